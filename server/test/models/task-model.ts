import { isFinished, taskMoves, type TaskState } from '#contract/tasks/task-lifecycle.ts'

/** Script of the task's actions, sent as its input. */
export const taskKinds = {
  plain: [{ text: 'Done.' }],
  slow: [{ text: 'Wait. ' }, { delay_ms: 200 }, { text: 'Done.' }],
  flaky: [{ error: { code: 'provider_unavailable', times: 1 } }, { text: 'Done.' }],
  asks: [{ tool_calls: [{ name: 'current_time' }] }, { text: 'It is {{tool_result}}.' }],
  asksTwice: [
    {
      tool_calls: [{ name: 'current_time' }, { name: 'current_time', arguments: { time_zone: 'Asia/Tokyo' } }],
    },
    { text: 'It is {{tool_result}}.' },
  ],
  question: [{ tool_calls: [{ name: 'request_input', arguments: { question: 'Which?' } }] }, { text: 'Done.' }],
  both: [
    { tool_calls: [{ name: 'request_input', arguments: { question: 'Which?' } }, { name: 'current_time' }] },
    { text: 'Done.' },
  ],
  naps: [{ tool_calls: [{ name: 'wait', arguments: { seconds: 0.2 } }] }, { text: 'Done.' }],
  waits: [{ tool_calls: [{ name: 'wait', arguments: { seconds: 3600 } }] }, { text: 'Done.' }],
  fails: [{ text: 'Well, ' }, { error: { code: 'provider_refused_request' } }],
  hurried: [{ tool_calls: [{ name: 'wait', arguments: { seconds: 3600 } }] }, { text: 'Done.' }],
  fleeting: [{ text: 'Done.' }],
  far: [{ text: 'Done.' }],
  hopeless: [{ text: 'Done.' }],
} as const
export type TaskKind = keyof typeof taskKinds

/** Members of the request that creates the task, besides the input. */
export function limitsOf(kind: TaskKind): Record<string, unknown> {
  const later = new Date(Date.now() + 3_600_000).toISOString()
  if (kind === 'hurried') return { timeout_seconds: 1 }
  if (kind === 'fleeting') return { queue_ttl_seconds: 1 }
  if (kind === 'far') return { run_after: later }
  return kind === 'hopeless' ? { run_after: later, queue_ttl_seconds: 1 } : {}
}

const asking: readonly TaskKind[] = ['asks', 'asksTwice', 'both']
const inquiring: readonly TaskKind[] = ['question', 'both']
const waiting: readonly TaskKind[] = ['waits', 'hurried', 'naps']
/** Kinds that fail after they have begun: five in a row would put the agent into `error`. */
export const failing: readonly TaskKind[] = ['fails', 'hurried']

/** What is known of a task, and the states that follow from it. */
export interface ModelTask {
  id: string
  kind: TaskKind
  /** The version of its agent, and whether that one asks before `current_time`. */
  version: number
  isAsked: boolean
  thread_id: string | null
  concurrency_key: string | null
  retried_from: string | null
  /** Whether its agent may have run since the task was created. */
  mayBegin: boolean
  /** Whether its agent was paused or stopped since the task was created. */
  wasHeld: boolean
  /** Input by people: approved or rejected calls, sent messages. */
  answers: number
  /** Its cancellation was requested and may still come. */
  isCancelAsked: boolean
  /** Its last seen state. */
  last: TaskState
  /** Its final state, which never changes. */
  end: string | null
  last_sequence: number
}

/** The members of a task in a response that the model checks. */
export interface SeenTask {
  id: string
  status: TaskState
  wait: { reason: string; approval_ids: string[] } | null
  agent_version: number
  retried_from: string | null
  thread_id: string | null
  started_at: string | null
  finished_at: string | null
  last_sequence: number
}

/** The states that a task may be in now. */
export function possible(task: ModelTask): TaskState[] {
  if (task.end !== null) return [task.last]
  return reachable(task.last).filter((state) => isPossible(task, state))
}

function reachable(from: TaskState): TaskState[] {
  const found = new Set([from])
  for (const state of found) for (const next of taskMoves[state]) found.add(next)
  return [...found]
}

function isPossible(task: ModelTask, state: TaskState): boolean {
  const { kind, retried_from } = task
  const runs = task.mayBegin && ((kind !== 'far' && kind !== 'hopeless') || retried_from !== null)
  if (state === task.last && isFinished(state)) return true
  if (state === 'queued') return !task.isCancelAsked
  if (state === 'canceled') return task.isCancelAsked
  if (state === 'expired') return kind === 'hopeless' || kind === 'fleeting' || (kind === 'hurried' && runs)
  if (state === 'running') return runs
  // A worker cancels a running task before anything else that would defer it.
  if (state === 'waiting') return runs && !task.isCancelAsked && (reasons(task).length > 0 || task.wasHeld)
  if (state === 'failed') return runs && kind === 'fails'
  if (kind === 'fails') return false
  // A retry may keep an ended wait, and continues after it.
  if (['waits', 'hurried'].includes(kind) && retried_from === null) return false
  const needsAnswer = inquiring.includes(kind) || (asking.includes(kind) && task.isAsked)
  return runs && (!needsAnswer || task.answers > 0 || retried_from !== null)
}

/** What a task may wait for without a request. */
export function reasons({ kind, isAsked }: ModelTask): string[] {
  return [
    ...(asking.includes(kind) && isAsked ? ['approval'] : []),
    ...(inquiring.includes(kind) ? ['input'] : []),
    ...(waiting.includes(kind) ? ['timer'] : []),
  ]
}

/** How a read task contradicts the model; undefined if it does not, and then the model is updated from it. */
export function learn(task: ModelTask, seen: SeenTask): string | undefined {
  const { status, wait } = seen
  if (!possible(task).includes(status)) return `is ${status}, not ${possible(task).join(' or ')}`
  if ((wait !== null) !== (status === 'waiting')) return `is ${status} with wait ${JSON.stringify(wait)}`
  if (wait && !isReason(task, wait.reason)) return `waits for ${wait.reason}`
  if (seen.agent_version !== task.version) return `has version ${seen.agent_version}, not ${task.version}`
  if (seen.retried_from !== task.retried_from) return `is retried from ${seen.retried_from}`
  if (seen.thread_id !== task.thread_id) return `is of thread ${seen.thread_id}`
  if (seen.last_sequence < task.last_sequence) return `went back to sequence ${seen.last_sequence}`
  const text = JSON.stringify(seen)
  if (task.end !== null && task.end !== text) return `was ${task.end} and is ${text}`
  if (isFinished(status)) task.end = text
  task.last = status
  task.last_sequence = seen.last_sequence
  return undefined
}

function isReason(task: ModelTask, reason: string): boolean {
  return reasons(task).includes(reason) || (task.wasHeld && (reason === 'agent_paused' || reason === 'agent_stopped'))
}

/**
 * Whether a task can stay as it is without a request; the rest of the run's tasks are given as they are now. `agent` is
 * the stable state of its agent.
 */
export function isAtRest(task: ModelTask, seen: SeenTask, agent: string, all: readonly ModelTask[]): boolean {
  const { status, wait } = seen
  if (isFinished(status)) return true
  if (status === 'running' || task.isCancelAsked) return false
  // They become due without a request.
  if (status === 'queued' && (task.kind === 'hopeless' || task.kind === 'fleeting')) return false
  if (status === 'waiting' && (task.kind === 'hurried' || (task.kind === 'naps' && wait!.reason === 'timer')))
    return false
  if (status === 'waiting') {
    if (reasons(task).includes(wait!.reason)) return true
    return agent !== 'running' && wait!.reason === `agent_${agent}`
  }
  if (agent !== 'running') return true
  const isFar = task.kind === 'far' && task.retried_from === null
  return isFar || all.some((other) => keepsBack(other, task, all))
}

/** Whether a task must end before another may begin: it is earlier in the thread, or has the same concurrency key. */
export function keepsBack(one: ModelTask, other: ModelTask, all: readonly ModelTask[]): boolean {
  if (one === other || isFinished(one.last)) return false
  if (one.thread_id !== null && one.thread_id === other.thread_id && all.indexOf(one) < all.indexOf(other)) return true
  return one.concurrency_key !== null && one.concurrency_key === other.concurrency_key
}
