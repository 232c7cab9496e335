import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { taskMoves } from '#contract/tasks/task-lifecycle.ts'
import { checkEffects, type Effect, type JournaledCall } from './check-effects.ts'
import { checkMoves, type Move } from './check-moves.ts'
import { checkSequences, type Watch } from './check-sequences.ts'
import { checkCancels, checkSet, type FoundTask } from './check-set.ts'
import { checkTurns } from './check-turns.ts'
import { History, type Operation } from './history.ts'
import { refuses } from './refuses.ts'

describe('a history', () => {
  it('distinguishes an answer, a refusal, and an unknown outcome', async () => {
    const history = new History()
    const reply = (status: number) => async () => ({ status, headers: new Headers(), body: {} })
    await history.record('create', 'a', 1, reply(201))
    await history.record('create', 'b', 2, reply(409))
    await history.record('create', 'c', 3, reply(503))
    const doing = { status: 409, headers: new Headers(), body: { error: { code: 'request_in_progress' } } }
    await history.record('create', 'e', 5, async () => doing)
    await history.record('create', 'd', 4, () => Promise.reject(new Error('connection reset')))
    assert.deepEqual(
      history.of('create').map(({ key, outcome }) => [key, outcome]),
      [
        ['a', 'ok'],
        ['b', 'fail'],
        ['c', 'unknown'],
        ['e', 'unknown'],
        ['d', 'unknown'],
      ],
    )
    assert.ok(history.operations.every(({ t_invoke, t_return }) => t_return >= t_invoke))
  })
})

describe('the checker of sets', () => {
  const create = (key: string, outcome: Operation['outcome'] = 'ok'): Operation => ({
    t_invoke: 0,
    t_return: 1,
    op: 'create',
    key,
    value: null,
    outcome,
  })
  const task = (key: string, more: Partial<FoundTask> = {}): FoundTask => ({
    id: `task_${key}`,
    key,
    status: 'completed',
    ...more,
  })

  it('the checker of sets accepts what was acknowledged, what may have been, and the absence of what was refused', () => {
    const creations = [create('a'), create('b', 'unknown'), create('c', 'unknown'), create('d', 'fail')]
    assert.deepEqual(checkSet(creations, [task('a'), task('b', { status: 'canceled' })]), [])
    assert.deepEqual(checkSet([create('a', 'unknown'), create('a')], [task('a')]), [])
  })
  it('the checker of sets refuses an acknowledged task that is lost', () => {
    refuses(checkSet([create('a'), create('b')], [task('a')]), /b was acknowledged and is lost/)
    refuses(checkSet([create('a', 'unknown'), create('a')], []), /a was acknowledged and is lost/)
  })
  it('the checker of sets refuses a task that was created twice, refused, or never requested', () => {
    refuses(checkSet([create('a')], [task('a'), task('a', { id: 'task_2' })]), /created 2 times/)
    refuses(checkSet([create('a', 'fail')], [task('a')]), /refused and is there/)
    refuses(checkSet([], [task('a')]), /never asked for/)
  })
  it('the checker of sets refuses a task that does not end', () => {
    for (const status of ['queued', 'running', 'waiting'] as const)
      refuses(checkSet([create('a')], [task('a', { status })]), /has not ended/)
  })
  it('the checker of sets refuses a cancellation that was no success', () => {
    const cancel = (status: number): Operation => ({ ...create('task_a'), op: 'cancel', status })
    assert.deepEqual(checkCancels([cancel(200)], [task('a', { status: 'canceled' })]), [])
    assert.deepEqual(checkCancels([cancel(202)], [task('a')]), [])
    refuses(checkCancels([cancel(200)], [task('a')]), /said to be canceled and is completed/)
  })
})

describe('the checker of effects', () => {
  const effect = (call: string, more: Partial<Effect> = {}): Effect => ({
    call,
    safety: 'unsafe',
    key: `key of ${call}`,
    ...more,
  })
  const journaled = (call: string, more: Partial<JournaledCall> = {}): JournaledCall => ({
    call,
    wasAnswered: true,
    repeatsApproved: 0,
    ...more,
  })

  it('the checker of effects accepts repetitions of safe and keyed calls, and those that a person allowed', () => {
    const keyed = effect('b', { safety: 'keyed' })
    const safe = effect('c', { safety: 'safe', key: undefined })
    assert.deepEqual(
      checkEffects(
        [effect('a'), keyed, keyed, safe, safe, effect('d'), effect('d')],
        [journaled('a'), journaled('b'), journaled('c'), journaled('d', { repeatsApproved: 1 })],
      ),
      [],
    )
    assert.deepEqual(checkEffects([], [journaled('e', { wasAnswered: false })]), [])
  })
  it('the checker of effects refuses an unsafe call that was made again', () => {
    refuses(checkEffects([effect('a'), effect('a')], [journaled('a')]), /made 2 times, where 1 were allowed/)
    refuses(
      checkEffects([effect('a'), effect('a'), effect('a')], [journaled('a', { repeatsApproved: 1 })]),
      /made 3 times, where 2 were allowed/,
    )
  })
  it('the checker of effects refuses calls without a key, with changing keys, and with the key of another call', () => {
    const keyed = (call: string, key: string | undefined): Effect => effect(call, { safety: 'keyed', key })
    refuses(checkEffects([keyed('a', undefined)], [journaled('a')]), /without a key/)
    refuses(checkEffects([keyed('a', '1'), keyed('a', '2')], [journaled('a')]), /with 2 keys/)
    refuses(checkEffects([keyed('a', '1'), keyed('b', '1')], [journaled('a'), journaled('b')]), /the key of a/)
  })
  it('the checker of effects refuses an answer without a call, and a call that no journal knows', () => {
    refuses(checkEffects([], [journaled('a')]), /never made/)
    refuses(checkEffects([effect('a')], []), /in no journal/)
  })
})

describe('the checker of sequences', () => {
  const events = (...types: string[]) => types.map((type, i) => ({ sequence: i + 1, type, data: { type } }))
  const whole = events('task.created', 'task.started', 'task.completed')
  const watch = (list: Watch['events'], watcher = 'ada'): Watch => ({ watcher, task_id: 'task_1', events: list })

  it('the checker of sequences accepts watchers that got every event once, in any order of members', () => {
    const other = whole.map(({ sequence, ...event }) => ({ data: event.data, type: event.type, sequence }))
    assert.deepEqual(checkSequences([watch(whole), watch(other, 'bob')]), [])
  })
  it('the checker of sequences refuses a gap, a repetition, a wrong order, and a beginning in the middle', () => {
    const [one, two, three] = whole
    for (const list of [
      [one!, three!],
      [one!, two!, two!, three!],
      [two!, one!, three!],
      [two!, three!],
    ])
      refuses(checkSequences([watch(list)]), /got \d as event \d/)
  })
  it('the checker of sequences refuses a watcher without the end, and two ends', () => {
    refuses(checkSequences([watch(whole.slice(0, 2))]), /task\.started last/)
    refuses(checkSequences([watch([])]), /nothing last/)
    refuses(checkSequences([watch(events('task.created', 'task.failed', 'task.completed'))]), /2 ends/)
    assert.ok(checkSequences([watch(events('task.created', 'task.completed', 'step.started'))]).length > 0)
  })
  it('the checker of sequences refuses watchers that got different things', () => {
    const other = whole.map((event) => (event.sequence === 2 ? { ...event, data: { attempt: 2 } } : event))
    refuses(checkSequences([watch(whole), watch(other, 'bob')]), /bob of task_1 .* ada got/)
  })
})

describe('the checker of moves', () => {
  const move = (from: string | null, to: string, key = 'task_1'): Move => ({ key, from, to })
  const check = (moves: Move[]): string[] => checkMoves(moves, taskMoves, ['queued'])

  it('the checker of moves accepts moves of the table', () => {
    assert.deepEqual(check([move(null, 'queued'), move('queued', 'running'), move('running', 'completed')]), [])
  })
  it('the checker of moves refuses a move that the table does not have, also from an end', () => {
    refuses(check([move(null, 'queued'), move('queued', 'completed')]), /from queued to completed/)
    refuses(
      check([move(null, 'queued'), move('queued', 'canceled'), move('canceled', 'running')]),
      /from canceled to running/,
    )
  })
  it('the checker of moves refuses a move that begins where the last one did not end', () => {
    refuses(check([move(null, 'queued'), move('waiting', 'running')]), /moved from waiting, where it was queued/)
  })
  it('the checker of moves refuses a wrong first state', () => {
    refuses(check([move(null, 'running')]), /from nothing to running/)
  })
})

describe('the checker of turns', () => {
  const turns = new Map([
    ['a', ['thread 1']],
    ['b', ['thread 1', 'key 1']],
    ['c', ['key 1']],
  ])
  const moves = (...list: string[]): Move[] =>
    list.map((text) => {
      const [key, to] = text.split(' ') as [string, string]
      return { key, from: null, to }
    })

  it('the checker of turns accepts tasks that begin when the one before has ended, or has never begun', () => {
    assert.deepEqual(checkTurns(moves('a running', 'a waiting', 'a running', 'a completed', 'b running'), turns), [])
    assert.deepEqual(checkTurns(moves('a running', 'c running', 'x running', 'y running'), turns), [])
    assert.deepEqual(checkTurns(moves('a canceled', 'b running', 'b failed', 'c running'), turns), [])
  })
  it('the checker of turns refuses a task that begins while another one has its turn, also where that waits', () => {
    refuses(checkTurns(moves('a running', 'b running'), turns), /b began while a had the turn of thread 1/)
    refuses(checkTurns(moves('b running', 'b waiting', 'c running'), turns), /c began while b had the turn of key 1/)
  })
})
