import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { checkDeliveries, repetitions, type DeliveryHistory, type SeenDelivery } from './check-deliveries.ts'
import { checkOutbox, type OutboxEvent, type OutboxHistory } from './check-outbox.ts'
import type { Operation } from './history.ts'
import { refuses } from './refuses.ts'

describe('the checker of deliveries', () => {
  const events: DeliveryHistory['events'] = [
    { id: 'evt_1', org_id: 'org_a', type: 'project.created', body: '{"name":"one"}' },
    { id: 'evt_2', org_id: 'org_a', type: 'task.completed', body: '{"name":"two"}' },
    { id: 'evt_3', org_id: 'org_b', type: 'project.created', body: '{"name":"three"}' },
  ]
  const hooks: DeliveryHistory['hooks'] = [
    { path: '/a', org_id: 'org_a', events: ['project.created', 'task.*'] },
    { path: '/b', org_id: 'org_b', events: ['project.created', 'agent.failed'] },
  ]
  const delivery = (path: string, number: 1 | 2 | 3, more: Partial<SeenDelivery> = {}): SeenDelivery => {
    const { id, body } = events[number - 1]!
    return { path, event_id: id, body, isGenuine: true, at: 1000, status: 200, ...more }
  }
  const whole = [delivery('/a', 1), delivery('/a', 2), delivery('/b', 3)]
  const check = (seen: readonly SeenDelivery[], more: Partial<DeliveryHistory> = {}): string[] =>
    checkDeliveries({ events, hooks, seen, killed: [], ...more })

  it('the checker of deliveries accepts each once, in any order, and again after a failure or a death', () => {
    assert.deepEqual(check(whole.toReversed()), [])
    for (const status of [null, 302, 500]) assert.deepEqual(check([delivery('/a', 1, { status }), ...whole]), [])
    const again = delivery('/a', 1, { at: 60_000 })
    assert.deepEqual(check([...whole, again], { killed: [1040] }), [])
    assert.deepEqual(repetitions([...whole, again]), [[whole[0], again]])
    assert.deepEqual(repetitions([delivery('/a', 1, { status: 500 }), ...whole]), [])
  })
  it('the checker of deliveries refuses an event that was not sent, or that was not accepted', () => {
    refuses(check(whole.slice(1)), /\/a was not told evt_1/)
    refuses(check([...whole.slice(1), delivery('/a', 1, { status: 500 })]), /\/a was not told evt_1/)
  })
  it('the checker of deliveries refuses what came again although it had been accepted, without a death before that was known', () => {
    const again = delivery('/a', 1, { at: 60_000 })
    for (const killed of [[], [500], [30_000], [60_500]])
      refuses(check([...whole, again], { killed }), /\/a had taken evt_1 and got it again after 59000 ms/)
    refuses(check([...whole, again, again], { killed: [1040] }), /after 0 ms/)
  })
  it('the checker of deliveries refuses a signature, a body and an id that are not of this event', () => {
    refuses(check([delivery('/a', 1, { isGenuine: false }), ...whole.slice(1)]), /not genuine/)
    refuses(check([delivery('/a', 1, { body: '{"name":"two"}' }), ...whole.slice(1)]), /where it is {"name":"one"}/)
    refuses(check([...whole, delivery('/a', 1, { event_id: 'evt_9' })]), /evt_9, which was never committed/)
  })
  it('the checker of deliveries refuses what is for another organization, for no webhook, or was not subscribed to', () => {
    refuses(check([...whole, delivery('/a', 3)]), /\/a got evt_3, which is of org_b/)
    refuses(check([...whole, delivery('/c', 1)]), /\/c got evt_1 and is no webhook's/)
    const failed = { id: 'evt_4', org_id: 'org_a', type: 'agent.failed', body: '{}' } as const
    const more = { events: [...events, failed] }
    assert.deepEqual(check(whole, more), [])
    refuses(check([...whole, delivery('/a', 1, { event_id: 'evt_4', body: '{}' })], more), /has not subscribed/)
  })
})

describe('the checker of the outbox', () => {
  const did = (op: string, key: string, outcome: Operation['outcome'] = 'ok'): Operation => ({
    t_invoke: 0,
    t_return: 1,
    op,
    key,
    value: null,
    outcome,
  })
  const project = (type: string, id: number, name = `p${id}`): OutboxEvent => ({
    id: `evt_${type}_${id}`,
    type: `project.${type}`,
    data: { project: { id, name } },
  })
  const task = (type: string, id: string, status: string): OutboxEvent => ({
    id: `evt_${id}`,
    type: `agent.${type}`,
    data: { task: { id, status } },
  })
  const good: OutboxHistory = {
    events: [
      project('created', 1),
      project('created', 2),
      project('updated', 2, 'q2'),
      project('deleted', 2, 'q2'),
      task('completed', 't1', 'completed'),
      task('failed', 't2', 'failed'),
      task('failed', 't3', 'expired'),
      { id: 'evt_error', type: 'agent.failed', data: { task: null } },
      task('completed', 'of a deleted agent', 'completed'),
    ],
    projects: [{ id: 1, name: 'p1' }],
    tasks: [
      { id: 't1', status: 'completed' },
      { id: 't2', status: 'failed' },
      { id: 't3', status: 'expired' },
      { id: 't4', status: 'canceled' },
      { id: 't5', status: 'running' },
    ],
    operations: [
      did('create', 'p1', 'unknown'),
      did('create', 'p1'),
      did('create', 'p2'),
      did('create', 'p3', 'fail'),
      did('create', 'p4', 'unknown'),
      did('rename', '2'),
      did('rename', '1', 'unknown'),
      did('delete', '2', 'unknown'),
      did('delete', '2', 'fail'),
      did('delete', '1', 'fail'),
    ],
  }
  const without = (index: number): OutboxEvent[] => good.events.filter((_, i) => i !== index)
  const and = (...more: OutboxEvent[]): OutboxEvent[] => [...good.events, ...more]
  const check = (changes: Partial<OutboxHistory>): string[] => checkOutbox({ ...good, ...changes })

  it('the checker of the outbox accepts what was done, what may have been, and the absence of what was refused', () => {
    assert.deepEqual(check({}), [])
  })
  it('the checker of the outbox refuses what was acknowledged and has no event', () => {
    const wrong = check({ events: without(0) })
    assert.deepEqual(wrong, ['create p1 was acknowledged and has no event', 'project 1 is there and has no event'])
    refuses(check({ events: without(2) }), /rename 2 was acknowledged and has no event/)
    const operations = [...good.operations, did('delete', '2')]
    assert.match(check({ events: without(3), operations })[0]!, /delete 2 was acknowledged and has no event/)
  })
  it('the checker of the outbox refuses events of what was refused, never asked for, or not done', () => {
    refuses(check({ events: and(project('updated', 7)) }), /rename 7 has an event and was never asked for/)
    refuses(check({ events: and(project('created', 4)) }), /project 4 has a created event and does not exist/)
    const refused = check({ events: and(project('created', 3)), projects: [...good.projects, { id: 3, name: 'p3' }] })
    refuses(refused, /create p3 has an event and was refused/)
    refuses(check({ events: without(3) }), /project 2 has a created event and does not exist/)
    const there = [...good.projects, { id: 2, name: 'q2' }]
    refuses(check({ projects: there }), /project 2 exists and has a deleted event/)
  })
  it('the checker of the outbox refuses a second event of one thing', () => {
    refuses(check({ events: and(project('updated', 2)) }), /rename 2 has 2 events/)
    refuses(check({ events: and(task('completed', 't1', 'completed')) }), /t1 is completed and has the events .* and /)
  })
  it('the checker of the outbox refuses a missing, different or wrong event of the end of a task', () => {
    refuses(check({ events: without(4) }), /t1 is completed and has the events nothing/)
    refuses(
      check({ events: [...without(5), task('completed', 't2', 'completed')] }),
      /t2 is failed and has the events agent/,
    )
    refuses(check({ events: and(task('failed', 't4', 'failed')) }), /t4 is canceled and has the events agent.failed/)
    refuses(check({ events: and(task('completed', 't5', 'completed')) }), /t5 is running/)
  })
})
