import { eventAgent } from '#contract/events/events.ts'
import { EventOutput } from '#contract/events/task-event-payloads.ts'
import { agentMayWork, type TaskState } from '#contract/tasks/task-lifecycle.ts'
import { artifactsOf, lastText } from '../conversation/conversation.ts'
import type { Decide } from './journal.ts'
import { fitted } from './task-outbox.ts'
import type { LockedTask, Step, TaskArtifact, TaskError, TaskOutput, TaskUsage, Wait } from '../task.ts'

type Change = ReturnType<Decide>

/** The progress of a run: its steps, their usage, and the text of an unfinished answer. */
export interface Progress {
  steps: readonly Step[]
  usage: TaskUsage
  unfinished: string
}

/** Errors that affect more than one task, with the severity `critical` (decision D94). */
const criticalCodes = ['provider_credentials_refused', 'internal_error']

/** The end of a task that succeeded. */
export function completed(task: LockedTask, run: Progress, answer: TaskOutput): Change {
  const { usage } = run
  const output = withArtifacts(answer, run)!
  return {
    status: 'completed',
    wait: null,
    output,
    usage,
    job: { kind: 'end' },
    events: [{ type: 'task.completed', data: { output, usage } }],
    logs: [
      {
        level: 'info',
        message: 'Task completed',
        context: { ...spent(run), duration_seconds: duration_seconds(task) },
      },
    ],
    outbox: [{ type: 'agent.completed', data: { agent: agentOf(task), ...completedTask(task, output) } }],
  }
}

/** The end of a task that failed after all retries. It keeps the text that the model wrote so far. */
export function failed(task: LockedTask, error: TaskError, run?: Progress): Change {
  return ended(task, 'failed', error, run)
}

/** The output with the files that the task made. A task with files has an output even without an answer. */
export function withArtifacts(output: TaskOutput | null, run: Pick<Progress, 'steps'> | undefined): TaskOutput | null {
  return withFiles(output, artifactsOf(run?.steps ?? []))
}

function withFiles(output: TaskOutput | null, artifacts: readonly TaskArtifact[]): TaskOutput | null {
  return artifacts.length === 0 ? output : { content: '', data: null, ...output, artifacts: [...artifacts] }
}

/** The output of a task that ended early: the last text of its model, if there is one, and its files. */
export function partialOutput(text: string | undefined, artifacts: readonly TaskArtifact[]): TaskOutput | null {
  return withFiles(text === undefined ? null : { content: text, data: null }, artifacts)
}

/** The partial output of a run. */
export function outputSoFar({ steps, unfinished }: Pick<Progress, 'steps' | 'unfinished'>): TaskOutput | null {
  return partialOutput(lastText(steps, unfinished), artifactsOf(steps))
}

/** The end of a task that waited or ran too long. */
export function expired(task: LockedTask, run?: Progress): Change {
  const error =
    task.started_at === null
      ? {
          code: 'queue_ttl_exceeded',
          message: 'The task was not started within queue_ttl_seconds.',
          retryable: true,
          step_id: null,
        }
      : {
          code: 'task_timeout',
          message: 'The task took longer than timeout_seconds.',
          retryable: true,
          step_id: run?.steps.at(-1)?.id ?? null,
        }
  return ended(task, 'expired', error, run)
}

function ended(task: LockedTask, status: 'failed' | 'expired', error: TaskError, run: Progress | undefined): Change {
  const output = run ? outputSoFar(run) : null
  const usage = run?.usage ?? task.usage
  const severity = criticalCodes.includes(error.code) ? 'critical' : 'medium'
  const failure = { code: error.code, message: error.message }
  return {
    status,
    wait: null,
    output,
    error,
    usage,
    job: { kind: task.worker_id === null && run === undefined ? 'forget' : 'end' },
    events: [{ type: `task.${status}`, data: { error, output, usage } }],
    logs: [
      { level: 'error', message: `Task ${status}: ${error.message}`, context: { ...(run ? spent(run) : {}), error } },
    ],
    outbox: [
      { type: 'agent.failed', data: { agent: agentOf(task), task: endedTask(task, status), error: failure } },
      {
        type: 'error.occurred',
        data: {
          error: { ...failure, severity, affected_resources: [task.agent_id, task.id] },
          user_id: task.created_by,
          request_id: task.request_id,
        },
      },
    ],
  }
}

/** Makes a task wait, until it is resumed or until a time. */
export function waiting(
  task: LockedTask,
  reason: Wait['reason'],
  until: Date | undefined,
  {
    approvals = [],
    calls = [],
    step_ids = [],
    children = [],
    ...more
  }: { approvals?: string[]; calls?: string[]; step_ids?: string[]; children?: string[] } & Pick<
    Wait,
    'credential_ids' | 'queue'
  > = {},
): Change {
  const wait: Wait = {
    reason,
    since: task.now,
    until: until?.toISOString() ?? null,
    approval_ids: approvals,
    ...(calls.length > 0 && { tool_call_ids: calls }),
    ...(step_ids.length > 0 && { step_ids }),
    ...(children.length > 0 && { child_task_ids: children }),
    ...more,
  }
  return {
    status: 'waiting',
    wait,
    job: until ? { kind: 'again', start_after: until } : { kind: 'end' },
    events: [{ type: 'task.waiting', data: { wait } }],
  }
}

/** Why the task's agent keeps it from running; undefined if it does not. */
export function agentHolds({ agent }: LockedTask): 'agent_paused' | 'agent_stopped' | undefined {
  if (!agent || agentMayWork(agent)) return undefined
  return (agent.status === 'updating' ? agent.settles_to : agent.status) === 'paused' ? 'agent_paused' : 'agent_stopped'
}

/** Joins the change of a completed step with the change that follows, into one write. */
export function joined(first: Change | undefined, next: Change): Change {
  if (!first) return next
  return {
    ...first,
    ...next,
    steps: lastOfEach([...(first.steps ?? []), ...(next.steps ?? [])]),
    events: [...(first.events ?? []), ...(next.events ?? [])],
    logs: [...(first.logs ?? []), ...(next.logs ?? [])],
    approvals: [...(first.approvals ?? []), ...(next.approvals ?? [])],
    tool_calls: [...(first.tool_calls ?? []), ...(next.tool_calls ?? [])],
    delegations: [...(first.delegations ?? []), ...(next.delegations ?? [])],
    calls: [...(first.calls ?? []), ...(next.calls ?? [])],
    warnings: [...(first.warnings ?? []), ...(next.warnings ?? [])],
  }
}

/** A step that failed and starts again in the same write is one row, in its last state. */
function lastOfEach(steps: readonly Step[]): Step[] {
  return [...new Map(steps.map((step) => [step.index, step])).values()]
}

function agentOf({ agent_id, project_id, agent }: LockedTask) {
  return eventAgent({ id: agent_id, name: agent?.name ?? '', project_id, status: agent?.status ?? 'stopped' })
}

function endedTask<Status extends TaskState>(task: LockedTask, status: Status) {
  return {
    id: task.id,
    status,
    started_at: task.started_at,
    finished_at: task.event_at,
    duration_seconds: duration_seconds(task),
  }
}

/** A completed task with its output, cut to the size of webhook events. */
function completedTask(task: LockedTask, output: TaskOutput) {
  const { value, truncated } = fitted(EventOutput, output)
  return { task: { ...endedTask(task, 'completed'), output: value }, truncated }
}

function duration_seconds({ started_at, event_at }: LockedTask): number {
  return started_at === null ? 0 : (Date.parse(event_at) - Date.parse(started_at)) / 1000
}

function spent({ usage }: Pick<Progress, 'usage'>): Record<string, unknown> {
  return { steps: usage.steps, input_tokens: usage.input_tokens, output_tokens: usage.output_tokens }
}
