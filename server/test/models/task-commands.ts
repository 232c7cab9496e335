import fc from 'fast-check'
import type { AgentAction } from '#contract/resources/agent-lifecycle.ts'
import { taskKinds, type ModelTask, type TaskKind } from './task-model.ts'
import type { TaskRun } from './task-run.ts'

/** Something that is done in a run, with the words that a counterexample tells it in. */
class Do implements fc.AsyncCommand<TaskRun, TaskRun> {
  readonly #words: string
  readonly #act: (run: TaskRun) => Promise<unknown>
  constructor(text: string, act: (run: TaskRun) => Promise<unknown>) {
    this.#words = text
    this.#act = act
  }
  check(): boolean {
    return true
  }
  async run(run: TaskRun): Promise<void> {
    await this.#act(run)
  }
  toString(): string {
    return this.#words
  }
}

/** Does something with one of the tasks, if there is any. */
function withTask(text: string, pick: number, act: (run: TaskRun, task: ModelTask) => Promise<unknown>): Do {
  return new Do(`${text} task ${pick}`, async (run) => {
    const { tasks } = run
    if (tasks.length > 0) await act(run, tasks[pick % tasks.length]!)
  })
}

const pick = fc.nat(9)
const rarely = fc.oneof({ weight: 4, arbitrary: fc.constant(false) }, { weight: 1, arbitrary: fc.constant(true) })
const kinds = fc.constantFrom(...(Object.keys(taskKinds) as TaskKind[]))
const create = fc
  .record({ kind: kinds, isThreaded: rarely, isKeyed: rarely })
  .map(
    ({ kind, ...limitKeys }) =>
      new Do(`create ${kind} ${JSON.stringify(limitKeys)}`, (run) => run.create(kind, limitKeys)),
  )
const verb = fc.constantFrom<AgentAction[]>('start', 'start', 'pause', 'stop', 'restart')
const verbOrDelete = fc.oneof({ weight: 9, arbitrary: verb }, { weight: 1, arbitrary: fc.constant('delete' as const) })
const createWhile = fc
  .tuple(kinds, rarely, verbOrDelete)
  .map(
    ([kind, isThreaded, meanwhile]) =>
      new Do(`create ${kind}${isThreaded ? ' in the thread' : ''} ‖ ${meanwhile}`, (run) =>
        run.create(kind, { isThreaded, isKeyed: false }, meanwhile),
      ),
  )
const both = fc.tuple(verb, verb).map(([one, other]) => new Do(`${one} ‖ ${other}`, (run) => run.actBoth(one, other)))
const action = verb.map((kind) => new Do(kind, (run) => run.act(kind)))
const update = fc
  .constantFrom(
    { tool_policies: { current_time: 'ask' } },
    { tool_policies: { current_time: 'auto' } },
    { max_concurrent_tasks: 1 },
    { max_concurrent_tasks: null },
  )
  .map((config) => new Do(`update ${JSON.stringify(config)}`, (run) => run.update(config)))
const cancel = fc
  .tuple(pick, fc.constantFrom('graceful' as const, 'graceful' as const, 'force' as const))
  .map(([at, mode]) => withTask(`cancel ${mode}`, at, (run, task) => run.cancel(task, mode)))
const edits = fc.constantFrom(undefined, undefined, { time_zone: 'Europe/Berlin' }, { broken: true })
const resolve = fc
  .tuple(pick, fc.constantFrom('approve' as const, 'reject' as const), edits)
  .map(
    ([at, decision, args]) =>
      new Do(`${decision} ${JSON.stringify(args ?? {})} approval ${at}`, (run) => run.resolve(at, decision, args)),
  )
const message = pick.map((at) => withTask('message', at, (run, task) => run.message(task)))
const retry = fc
  .tuple(pick, fc.nat(5))
  .map(([at, keeps]) => withTask(`retry from ${keeps}`, at, (run, task) => run.retry(task, keeps)))
const read = pick.map((at) => withTask('read', at, (run, task) => run.read(task)))
const pass = fc
  .integer({ min: 1, max: 60 })
  .map((ms) => new Do(`${ms} ms`, () => new Promise((done) => setTimeout(done, ms))))
const rest = fc.constant(new Do('rest', (run) => run.rest()))
const remove = fc.constant(new Do('delete', (run) => run.agent({ kind: 'delete', id: run.id })))

/** What is asked for more often stands there more often: creations and actions of the agent. */
const many = [create, create, create, createWhile, createWhile, action, both, cancel, resolve, resolve, message, retry]

export const taskCommands = fc.commands<TaskRun, TaskRun, false>([...many, update, read, pass, rest, rest, remove], {
  maxCommands: 40,
  size: 'max',
})
