import { agentAcceptsTasks, isFinished, isTerminalEvent } from '#contract/tasks/task-lifecycle.ts'
import type { Logger } from 'pino'
import type { TaskEvent } from '../../events/streams/streams-hub.ts'
import { newId } from '../../platform/ids.ts'
import type { Sql } from '../../platform/postgres/database.ts'
import type { NewTask } from './new-task.ts'
import { canceled, cutShort, readReceipt } from '../journal/cancel.ts'
import {
  findChildrenUsage,
  hasOpenChildren,
  insertRootBudget,
  listEnded,
  listUnsettled,
  lockRequested,
  noteCreated,
  noteRefused,
  noteSettled,
  type EndedDelegation,
} from '../journal/delegations.queries.ts'
import { applyAnswers, resumed, type JournalNotice } from '../journal/resume.ts'
import { findStep, lockTasks } from '../journal/task-rows.ts'
import { addUsages } from '../journal/task-usage.ts'
import type { Queue } from '../queue/queue.ts'
import { stepEvents } from '../run/tool-plan.ts'
import { toolOutputMax } from '../tools/tool.ts'
import { cleanText, cutText } from '../../platform/clean-text.ts'
import type { Step } from '../task.ts'

/** Creates the tasks that agents delegate to each other, and writes their results to the tasks that wait for them. */
export interface Delegations {
  /** Reads events that this process committed, to find new and ended delegations. */
  seen(events: readonly TaskEvent[]): void
  /** Finishes the work that dead processes left. */
  sweep(): Promise<void>
  /** Resolves when no work is in flight. */
  stop(): Promise<void>
}

export interface DelegationOptions {
  sql: Sql
  queue: Queue
  log: Logger
  /** Stores a task in the caller's transaction. */
  enqueue: (tx: Sql, task: NewTask) => Promise<void>
  /** After the commit of a change to a task: publishes its events and wakes workers. */
  afterAnswer: (tx: Sql, notice: JournalNotice) => void
  /** Cancels a task whose parent has ended. */
  cancelOrphan: (task_id: string) => Promise<void>
}

const sweepMax = 200
/** Maximum number of delegations in work at a time; others wait. */
const concurrency = 4

export function openDelegations(options: DelegationOptions): Delegations {
  const { sql, log } = options
  /** Work to do, by a key that keeps each item once: tasks to create, and parents to resume. */
  const waiting = new Map<string, () => Promise<void>>()
  const running = new Set<Promise<void>>()
  let stopped = false

  const start = (): void => {
    while (running.size < concurrency && !stopped) {
      const [next] = waiting
      if (!next) return
      const [key, work] = next
      waiting.delete(key)
      const done = work()
        // The sweep of any process finds the work again.
        .catch((error: unknown) => log.warn({ err: error }, 'a delegation failed; a sweep will retry it'))
        .finally(() => {
          running.delete(done)
          start()
        })
      running.add(done)
    }
  }
  const add = (key: string, work: () => Promise<void>): void => {
    waiting.set(key, work)
    start()
  }
  const settle = (parent_task_id: string): void =>
    add(`settle ${parent_task_id}`, () => settleParent(options, parent_task_id))
  const create = (child_task_id: string): void =>
    add(`create ${child_task_id}`, async () => {
      const refused = await createChild(options, child_task_id)
      if (refused) settle(refused)
    })

  return {
    seen(events) {
      for (const { type, data } of events) {
        const { child_task_id, parent_task_id } = data
        if (type === 'step.started' && typeof child_task_id === 'string') create(child_task_id)
        if (isTerminalEvent(type) && typeof parent_task_id === 'string') settle(parent_task_id)
      }
    },
    async sweep() {
      const { requested, parents, orphans } = await listUnsettled(sql, sweepMax)
      requested.forEach(create)
      parents.forEach(settle)
      for (const orphan of orphans) await options.cancelOrphan(orphan)
    },
    async stop() {
      stopped = true
      await Promise.all(running)
    },
  }
}

/**
 * Creates the task of a delegation, once. If the task cannot be created, records why and returns the id of the parent.
 */
async function createChild({ sql, enqueue }: DelegationOptions, child_task_id: string): Promise<string | undefined> {
  return sql.begin(async (tx) => {
    const asked = await lockRequested(tx, child_task_id)
    if (!asked) return undefined
    const { parent_task_id, agent_id, project_id, agent_version, root_task_id } = asked
    const refuse = async (code: string, message: string): Promise<string> => {
      await noteRefused(tx, child_task_id, { code, message })
      return parent_task_id
    }
    if (asked.is_void) return refuse('task_ended', 'The task that delegated has ended.')
    const [agent] = await tx<NewTask['agent'] & { name: string; has_version: boolean }>`
      select a.id, a.project_id, a.name, a.status, a.settles_to, coalesce(v.config, a.config) as config,
        coalesce(${agent_version}::int, a.version) as version, ${agent_version}::int is null or v.agent_id is not null or a.version = ${agent_version}::int as has_version
      from agent a left join agent_version v on v.agent_id = a.id and v.version = ${agent_version}::int
      where a.id = ${agent_id} and a.project_id = ${project_id}`
    if (!agent) return refuse('delegate_not_found', 'The agent was deleted.')
    if (!agent.has_version)
      return refuse('delegate_not_found', `The agent ${agent.name} has no version ${agent_version}.`)
    if (!agentAcceptsTasks({ status: agent.status, settles_to: agent.settles_to }))
      return refuse('delegate_not_running', `The agent ${agent.name} is ${agent.status} and takes no tasks.`)
    await insertRootBudget(tx, newId('budget'), root_task_id)
    const { input, depth, depth_max, priority, created_by, credential_id, request_id, trace_id, traceparent } = asked
    await enqueue(tx, {
      id: child_task_id,
      agent,
      input,
      priority,
      created_by,
      credential_id,
      request_id,
      trace_id,
      traceparent,
      caller: { depth_max },
      parent: { task_id: parent_task_id, root_task_id, depth },
    })
    await noteCreated(tx, child_task_id)
    return undefined
  })
}

/** Writes the results of ended delegated tasks to their parent, and lets the parent continue. */
async function settleParent({ sql, queue, afterAnswer }: DelegationOptions, parent_task_id: string): Promise<void> {
  await sql.begin(async (tx) => {
    const task = (await lockTasks(tx, [parent_task_id])).get(parent_task_id)
    const ended = await listEnded(tx, parent_task_id)
    if (ended.length === 0) return
    const used = ended.flatMap(({ usage, children_usage }) =>
      usage ? [usage, ...(children_usage ? [children_usage] : [])] : [],
    )
    const before = await findChildrenUsage(tx, parent_task_id)
    const children_usage = [...(before ? [before] : []), ...used].reduce<typeof before>(
      (sum, one) => (sum ? addUsages(sum, one) : one),
      null,
    )
    await noteSettled(
      tx,
      parent_task_id,
      ended.map(({ child_task_id }) => child_task_id),
      children_usage,
    )
    if (!task || isFinished(task.status)) return
    const steps: Step[] = []
    for (const outcome of ended) {
      const step = await findStep(tx, parent_task_id, outcome.step_index)
      if (step?.status === 'started') steps.push(withOutcome(step, outcome))
    }
    // A task that is being canceled ends when the tasks that it delegated have ended.
    if (task.cancel && task.status === 'waiting' && !(await hasOpenChildren(tx, parent_task_id))) {
      const { events = [], ...end } = canceled(task, task.cancel, await readReceipt(tx, task.id))
      const change = {
        ...end,
        steps,
        events: [...steps.flatMap(stepEvents), ...events],
        job: { kind: 'forget' as const },
      }
      afterAnswer(tx, await applyAnswers(tx, queue, await cutShort(tx, [change])))
      return
    }
    const done = { steps, events: steps.flatMap(stepEvents) }
    const change = task.cancel && task.status === 'waiting' ? { task, ...done } : resumed(task, done)
    afterAnswer(tx, await applyAnswers(tx, queue, [change]))
  })
}

/** The step of the call with the result of its task. */
function withOutcome(step: Step, { refusal, status, output, error, agent_name }: EndedDelegation): Step {
  if (status === 'completed' && output) {
    const content = output.data === null ? output.content : JSON.stringify(output.data)
    const artifacts = output.artifacts ? { artifacts: output.artifacts } : {}
    return {
      ...step,
      status: 'completed',
      output: { content: cutText(cleanText(content), toolOutputMax), ...artifacts },
    }
  }
  const reason = error ? `: ${error.message}` : '.'
  const failure = refusal ?? {
    code: 'delegated_task_failed',
    message:
      status === null
        ? 'The delegated task was deleted.'
        : `The task of ${agent_name ?? 'the agent'} ended as ${status}${reason}`,
  }
  return {
    ...step,
    status: 'failed',
    output: { content: failure.message },
    error: { ...failure, message: failure.message.slice(0, 2000), retryable: false },
  }
}
