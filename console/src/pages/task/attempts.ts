import { formatDuration, plural } from '../../format.ts'
import type { TaskEvent } from '../../task-parts/types.ts'

/** What one worker did with a task: from its claim to the end of the task, to a wait, or to the loss of its worker. */
export interface Attempt {
  /** The number of the claim; undefined where its beginning is older than the events. */
  number: number | undefined
  started_at: string
  /** Null while it goes on. */
  ended_at: string | null
  /** Why it began, in words. */
  reason: string
  /** What it did, in words: `2 model calls, 1 tool call`. Empty where it began no step. */
  work: string
  /** What did not go straight: failed steps, repeated calls, other models, summaries. */
  notes: { sequence: number; at: string; text: string }[]
  /** How it ended, as a state of a task, and more of it in words. */
  state: 'running' | 'waiting' | 'completed' | 'failed' | 'canceled' | 'expired' | 'lost' | 'handed_back'
  ending: string
}

interface Data {
  attempt?: number
  reason?: string | null
  wait?: { reason: string }
  error?: { message: string } | null
  name?: string
  type?: string
  index?: number
  from?: string
  to?: string
  before_step?: number
  will_retry?: boolean
  retry_in_seconds?: number
}

/** The attempts that stored events of a task tell of, the newest first. `events` are in their order, without gaps. */
export function attemptsOf(events: readonly TaskEvent[]): Attempt[] {
  const attempts: Attempt[] = []
  let counts = new Map<string, number>()
  let current: Attempt | undefined
  const begin = (at: string, number: number | undefined, reason: string): Attempt => {
    counts = new Map()
    current = { number, reason, started_at: at, ended_at: null, work: '', notes: [], state: 'running', ending: '' }
    attempts.unshift(current)
    return current
  }
  const end = (at: string, state: Attempt['state'], ending: string): void => {
    if (!current) return
    Object.assign(current, { ended_at: at, state, ending })
    current = undefined
  }
  for (const { type, created_at: at, sequence, data: payload } of events) {
    const data = payload as Data
    if (type === 'task.started') begin(at, data.attempt, 'The first worker claimed the task.')
    else if (type === 'task.resumed') begin(at, data.attempt, resumption(data.reason))
    else if (type === 'task.retrying' && data.attempt !== undefined) {
      const isLost = data.reason === 'worker_lost'
      end(at, isLost ? 'lost' : 'handed_back', isLost ? 'The worker died or was cut off.' : 'The worker stopped.')
      begin(at, data.attempt, 'Another worker took over at the last finished step.')
    } else if (type === 'task.waiting') end(at, 'waiting', waitFor(data.wait?.reason))
    else if (type === 'task.completed') end(at, 'completed', '')
    else if (type === 'task.failed') end(at, 'failed', data.error?.message ?? '')
    else if (type === 'task.expired') end(at, 'expired', data.error?.message ?? '')
    else if (type === 'task.canceled') end(at, 'canceled', data.reason ?? '')
    else {
      const text = noteOf(type, data)
      if (type !== 'step.started' && text === undefined) continue
      const attempt = current ?? begin(at, undefined, 'It began before the events that are shown.')
      if (type === 'step.started') attempt.work = workWith(counts, data.type ?? 'step')
      else attempt.notes.push({ sequence, at, text: text! })
    }
  }
  return attempts
}

function resumption(reason: string | null | undefined): string {
  switch (reason) {
    case 'approval':
      return 'Resumed after an approval was resolved.'
    case 'input':
      return 'Resumed after a person answered.'
    case 'tool':
      return 'Resumed after the results of its tool calls arrived.'
    case 'child':
      return 'Resumed after a delegated task ended.'
    case 'budget':
      return 'Resumed after its budget had room again.'
    case 'credential':
      return 'Resumed after its credential was connected.'
    case 'unknown_outcome':
      return 'Resumed after a person said what became of a call.'
    case 'provider':
      return 'Resumed after the provider accepted calls again.'
    case 'agent_paused':
    case 'agent_stopped':
      return 'Resumed after its agent was started.'
    case 'timer':
      return 'Resumed at its time.'
    case 'worker':
      return 'Claimed by a worker on your side.'
    default:
      return 'Resumed.'
  }
}

function waitFor(reason: string | undefined): string {
  switch (reason) {
    case 'approval':
      return 'Waited for an approval.'
    case 'input':
      return 'Waited for an answer of a person.'
    case 'tool':
      return 'Waited for results of tool calls.'
    case 'child':
      return 'Waited for a delegated task.'
    case 'budget':
      return 'Waited for room in a budget.'
    case 'credential':
      return 'Waited for a credential to be connected.'
    case 'unknown_outcome':
      return 'Waited for a person to say what became of a call.'
    case 'provider':
      return 'Waited for the provider to accept calls again.'
    case 'agent_paused':
      return 'Its agent was paused.'
    case 'agent_stopped':
      return 'Its agent was stopped.'
    case 'timer':
      return 'Waited for its time.'
    case 'worker':
      return 'Waited for a worker on your side.'
    default:
      return 'Waited.'
  }
}

const kinds: Record<string, [one: string, many?: string]> = {
  model_call: ['model call'],
  tool_call: ['tool call'],
  approval: ['approval'],
  wait: ['wait'],
  compaction: ['summary', 'summaries'],
}

/** Counts one more step of a kind, and says all counts in words. */
function workWith(counts: Map<string, number>, type: string): string {
  counts.set(type, (counts.get(type) ?? 0) + 1)
  return [...counts].map(([kind, count]) => plural(count, ...(kinds[kind] ?? (['step'] as const)))).join(', ')
}

/** What an event says of an attempt beside its beginning and end; undefined where that is nothing. */
function noteOf(type: string, data: Data): string | undefined {
  const { index, name, error, before_step, from, to, will_retry, retry_in_seconds } = data
  const step = `Step ${index}${name === undefined ? '' : `, ${name},`}`
  switch (type) {
    case 'step.failed':
      return `${step} failed${will_retry === true ? ' and is tried again' : ''}: ${error?.message ?? 'no message'}`
    case 'task.retrying':
      return `The model call is repeated in ${formatDuration((retry_in_seconds ?? 0) * 1000)}.`
    case 'model.fallback':
      return `${to} took over from ${from}: ${error?.message ?? 'it failed'}`
    case 'context.compacted':
      return before_step === 0
        ? 'A summary replaced earlier messages of the thread.'
        : `A summary replaced the steps before step ${before_step}.`
    default:
      return undefined
  }
}
