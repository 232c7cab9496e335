import assert from 'node:assert/strict'
import type { AgentAction } from '#contract/resources/agent-lifecycle.ts'
import { isFinished, type TaskState } from '#contract/tasks/task-lifecycle.ts'
import { eventually, type Reply, type Send } from '../harness.ts'
import { request } from './agent-commands.ts'
import { explain, explainBoth, type Operation, type World } from './agent-model.ts'
import {
  failing,
  isAtRest,
  learn,
  limitsOf,
  possible,
  taskKinds,
  type ModelTask,
  type SeenTask,
  type TaskKind,
} from './task-model.ts'

/** Tasks that may fail in one run: with five in a row their agent would be in `error`. */
const failingMax = 4

interface SeenApproval {
  id: string
  task_id: string
  status: string
}

/** The model of an agent with its tasks. Every method makes one request and checks the response. */
export class TaskRun {
  readonly #send: Send
  readonly #project: number
  readonly base: string
  id = ''
  thread_id = ''
  worlds: World[] = [undefined]
  readonly tasks: ModelTask[] = []
  commands = 0
  #asksBefore = true

  constructor(send: Send, project: number) {
    this.#send = send
    this.#project = project
    this.base = `/api/v1/projects/${project}`
  }

  static async start(send: Send, project: number, name: string): Promise<TaskRun> {
    const run = new TaskRun(send, project)
    await run.agent({ kind: 'create', name, project })
    const world = run.worlds[0]!
    run.id = world.id!
    await run.update({
      tools: ['current_time', 'wait', 'request_input'],
      tool_policies: { current_time: 'ask' },
      retry: { initial_delay_seconds: 0.02 },
    })
    const { body } = await send('POST', `${run.base}/threads`, { body: { agent_id: run.id } })
    run.thread_id = body.id
    return run
  }

  /** The stable state of the agent; undefined if it was deleted. */
  get state(): string | undefined {
    const world = this.worlds[0]
    return world && (world.settles_to ?? world.status)
  }

  async agent(operation: Operation): Promise<void> {
    this.worlds = explain(
      this.worlds,
      operation,
      await request({ send: this.#send, project: this.#project }, operation),
    )
    this.commands += 1
    this.#noteState()
  }

  act(kind: AgentAction): Promise<void> {
    // Between the stop and the start of a restart, tasks are parked.
    if (kind === 'restart') for (const task of this.tasks) task.wasHeld = true
    return this.agent({ kind, id: this.id })
  }

  /** Two concurrent actions: either may come first. */
  async actBoth(one: AgentAction, other: AgentAction): Promise<void> {
    const operations: Operation[] = [one, other].map((kind) => ({ kind, id: this.id }))
    const asked = { send: this.#send, project: this.#project }
    const [first, second] = await Promise.all(
      operations.map(async (operation) => ({ operation, reply: await request(asked, operation) })),
    )
    this.worlds = explainBoth(this.worlds, first!, second!)
    this.commands += 2
    // Whatever the order, the agent may have been in any state in between.
    for (const task of this.tasks) Object.assign(task, { mayBegin: true, wasHeld: true })
    await this.agent({ kind: 'read', id: this.id })
  }

  async update(config: Record<string, unknown>): Promise<void> {
    const { tool_policies: policies } = config
    await this.agent({ kind: 'update', id: this.id, change: { config } })
    if (this.state && policies) this.#asksBefore = (policies as { current_time: string }).current_time === 'ask'
  }

  #noteState(): void {
    for (const task of this.tasks) {
      if (this.state === 'running') task.mayBegin = true
      else task.wasHeld = true
    }
  }

  /** Creates a task of the agent; with `meanwhile`, something happens to the agent at the same time. */
  async create(
    kind: TaskKind,
    { isThreaded, isKeyed }: { isThreaded: boolean; isKeyed: boolean },
    meanwhile?: AgentAction | 'delete',
  ): Promise<void> {
    if (!this.#mayFail(kind)) return
    const input = JSON.stringify(taskKinds[kind])
    const limitKeys = {
      ...(isThreaded ? { thread_id: this.thread_id } : {}),
      ...(isKeyed ? { concurrency_key: this.id } : {}),
    }
    const body = { input, ...limitsOf(kind), ...limitKeys }
    const states = [this.state]
    const version = this.#version
    const [reply] = await Promise.all([
      this.#send('POST', `${this.base}/agents/${this.id}/tasks`, { body }),
      meanwhile && (meanwhile === 'delete' ? this.agent({ kind: 'delete', id: this.id }) : this.act(meanwhile)),
    ])
    states.push(this.state)
    if (!this.#accepts(reply, states)) return
    if (this.state === undefined) return this.#goesAway(reply.body.id)
    this.#add(kind, reply, null, { version, states })
  }

  /** A task committed just after the deletion of its agent is deleted when a worker finds it. */
  async #goesAway(id: string): Promise<void> {
    await eventually(async () => (await this.#send('GET', `${this.base}/tasks/${id}`)).status === 404)
  }

  get #version(): number {
    return (this.worlds[0]?.versions.length ?? 0) - 1
  }

  /** The number of failing tasks in a run is limited. */
  #mayFail(kind: TaskKind): boolean {
    this.commands += 1
    return !failing.includes(kind) || this.tasks.filter((task) => failing.includes(task.kind)).length < failingMax
  }

  /**
   * Checks the response to the creation of a task while the agent was in one of these states; true if it was accepted.
   */
  #accepts(reply: Reply, states: readonly (string | undefined)[]): boolean {
    const { status, body } = reply
    if (status === 404) expect(reply, states.includes(undefined), 'agent_not_found')
    else if (status === 201) expect(reply, states.includes('running') || states.includes('paused'))
    else {
      const isStopped = ['stopped', 'updating'].includes(body.error.details.current_status)
      expect(reply, status === 409 && isStopped && states.includes('stopped'), 'agent_not_running')
    }
    return status === 201
  }

  #add(
    kind: TaskKind,
    { body }: Reply,
    retried_from: ModelTask | null,
    { version, states }: { version: number; states: readonly (string | undefined)[] },
  ): void {
    const task: ModelTask = {
      id: body.id,
      kind,
      version,
      isAsked: this.#asksBefore || (retried_from?.isAsked ?? false),
      thread_id: body.thread_id,
      concurrency_key: body.concurrency_key,
      retried_from: retried_from?.id ?? null,
      mayBegin: states.includes('running'),
      wasHeld: states.some((state) => state !== 'running'),
      answers: 0,
      isCancelAsked: false,
      last: 'queued',
      end: null,
      last_sequence: 1,
    }
    this.tasks.push(task)
    this.#judge(task, body)
  }

  #judge(task: ModelTask, seen: SeenTask): void {
    const wrong = learn(task, seen)
    assert.equal(wrong, undefined, `${task.id} ${wrong}: ${JSON.stringify(task)}`)
  }

  async #ask(task: ModelTask, verb: string, body: object = {}): Promise<Reply | undefined> {
    this.commands += 1
    const reply = await this.#send('POST', `${this.base}/tasks/${task.id}/${verb}`, { body })
    if (this.state !== undefined) return reply
    expect(reply, reply.status === 404, 'task_not_found')
    return undefined
  }

  async read(task: ModelTask): Promise<SeenTask | undefined> {
    this.commands += 1
    const reply = await this.#send('GET', `${this.base}/tasks/${task.id}`)
    if (this.state === undefined) return void expect(reply, reply.status === 404, 'task_not_found')
    expect(reply, reply.status === 200)
    this.#judge(task, reply.body)
    return reply.body
  }

  async cancel(task: ModelTask, mode: 'graceful' | 'force'): Promise<void> {
    const before = possible(task)
    const reply = await this.#ask(task, 'cancel', { mode })
    if (!reply) return
    if (reply.status === 409) return this.#ended(task, before, reply, ['completed', 'failed', 'expired'])
    task.isCancelAsked = true
    if (reply.status === 200) {
      const allowed: TaskState[] = ['queued', 'waiting', 'canceled', ...(mode === 'force' ? ['running' as const] : [])]
      const wasAllowed =
        allowed.some((state) => before.includes(state)) || (task.isCancelAsked && before.includes('running'))
      expect(reply, wasAllowed && reply.body.status === 'canceled', undefined, before)
      task.last = 'canceled'
    } else {
      const runs = before.includes('running') && mode === 'graceful'
      expect(reply, reply.status === 202 && reply.body.status === 'running' && runs, undefined, before)
    }
  }

  /** A refusal because the task has ended names its final state, which must not change. */
  #ended(task: ModelTask, before: readonly TaskState[], reply: Reply, ends: readonly TaskState[]): void {
    const status: TaskState = reply.body.error.details.current_status
    expect(
      reply,
      reply.status === 409 && before.includes(status) && ends.includes(status),
      'task_already_finished',
      before,
    )
    task.last = status
  }

  async message(task: ModelTask): Promise<void> {
    const before = possible(task)
    task.answers += 1
    const reply = await this.#ask(task, 'messages', { content: 'Go on.' })
    if (!reply) return
    if (reply.status === 409) return this.#ended(task, before, reply, ['completed', 'failed', 'canceled', 'expired'])
    expect(reply, reply.status === 201 && before.some((state) => !isFinished(state)), undefined, before)
  }

  async retry(task: ModelTask, keeps: number): Promise<void> {
    if (!this.#mayFail(task.kind)) return
    const before = possible(task)
    const journal = await this.#send('GET', `${this.base}/tasks/${task.id}/steps`)
    const from_step = Math.min(keeps, journal.body.pagination?.total ?? 0)
    const reply = await this.#ask(task, 'retry', { from_step })
    if (!reply) return
    const { status, body } = reply
    if (status === 409 && body.error.code === 'resource_conflict') {
      const value: TaskState = body.error.details.conflicting_value
      return expect(reply, before.includes(value) && !isFinished(value), 'resource_conflict', before)
    }
    const ends = before.some(isFinished)
    expect(reply, ends, undefined, before)
    const states = [this.state]
    if (this.#accepts(reply, states)) this.#add(task.kind, reply, task, { version: this.#version, states })
  }

  async approvals(): Promise<SeenApproval[]> {
    const { body } = await this.#send('GET', `${this.base}/approvals?limit=100&agent_id=${this.id}`)
    return body.approvals
  }

  /** Decides one of the approvals, pending or not. */
  async resolve(pick: number, decision: 'approve' | 'reject', args?: Record<string, unknown>): Promise<void> {
    this.commands += 1
    const all = await this.approvals()
    if (all.length === 0) return
    await this.resolveOne(all[pick % all.length]!, decision, args)
  }

  async resolveOne(
    approval: SeenApproval,
    decision: 'approve' | 'reject',
    args?: Record<string, unknown>,
  ): Promise<void> {
    const task = this.tasks.find(({ id }) => id === approval.task_id)!
    const before = possible(task)
    task.answers += 1
    const body = { decision, ...(args && decision === 'approve' ? { arguments: args } : {}) }
    const reply = await this.#send('POST', `${this.base}/approvals/${approval.id}/resolve`, { body })
    if (decision === 'approve' && args && 'broken' in args)
      return expect(reply, reply.status === 400, 'validation_error')
    if (reply.status === 409) {
      const { current_status } = reply.body.error.details
      const mayHaveEnded = before.some(isFinished) && current_status === 'expired'
      return expect(
        reply,
        approval.status === 'pending' ? mayHaveEnded : current_status === approval.status,
        'approval_already_resolved',
        before,
      )
    }
    const isRight = reply.body.status === (decision === 'approve' ? 'approved' : 'rejected')
    expect(reply, reply.status === 200 && approval.status === 'pending' && isRight, undefined, before)
  }

  /** Every task reaches a state in which the model allows it to stay. */
  async rest(): Promise<void> {
    const { state } = this
    if (state === undefined) return
    let restless: string[] = []
    await eventually(async () => {
      restless = []
      for (const task of this.tasks) {
        if (task.end !== null) continue
        const seen = (await this.read(task))!
        if (!isAtRest(task, seen, state, this.tasks)) restless.push(`${task.kind} ${JSON.stringify(seen)}`)
      }
      return restless.length === 0
    }).catch((error: unknown) => {
      throw new Error(`no rest while the agent is ${state}: ${restless.join('; ')}`, { cause: error })
    })
  }

  /** Runs the agent and answers every wait until every task has ended. */
  async end(): Promise<void> {
    if (this.state === undefined) return
    await this.act(this.tasks.length % 2 === 0 ? 'restart' : 'start')
    let open: ModelTask[] = []
    await eventually(async () => {
      for (const task of this.tasks) if (task.end === null) await this.#push(task)
      for (const approval of await this.approvals())
        if (approval.status === 'pending') await this.resolveOne(approval, 'approve')
      open = this.tasks.filter(({ end }) => end === null)
      return open.length === 0
    }).catch((error: unknown) => {
      throw new Error(`not ended: ${JSON.stringify(open)}`, { cause: error })
    })
  }

  async #push(task: ModelTask): Promise<void> {
    const seen = await this.read(task)
    if (!seen || isFinished(seen.status)) return
    const isFar = task.kind === 'far' && task.retried_from === null
    if ((task.kind === 'waits' && seen.status === 'waiting') || isFar) return this.cancel(task, 'graceful')
    if (seen.wait?.reason === 'input') await this.message(task)
  }

  events(task: ModelTask): Promise<Reply> {
    return this.#send('GET', `${this.base}/tasks/${task.id}/events?limit=1000`)
  }

  steps(task: ModelTask): Promise<Reply> {
    return this.#send('GET', `${this.base}/tasks/${task.id}/steps?limit=100`)
  }
}

function expect({ status, body }: Reply, isRight: boolean, code?: string, possibly?: unknown): void {
  const isCode = code === undefined || body.error?.code === code
  assert.ok(isRight && isCode, `${status} ${JSON.stringify(body)}, expected ${code ?? ''} ${JSON.stringify(possibly)}`)
}
