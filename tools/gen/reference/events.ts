import { projectFrameTypes, type ProjectFrameType } from '#contract/events/project-events.ts'
import {
  isTerminalEvent,
  liveEventTypes,
  taskEventTypes,
  type LiveEventType,
  type TaskEventType,
} from '#contract/tasks/task-lifecycle.ts'
import { code, codes, section, table, type Page } from './markdown.ts'
import { webhookSections } from './webhook-events.ts'

/** When an event happens, and the members of its `data`. */
type Words = readonly [when: string, data: readonly string[]]

const taskEventWords: Record<TaskEventType, Words> = {
  'task.created': ['The task is stored.', ['status', 'agent_id', 'agent_version']],
  'task.started': ['A worker has started it.', ['attempt']],
  'task.waiting': ['It waits.', ['wait']],
  'task.resumed': ['It continues after a wait.', ['attempt', 'reason']],
  'task.retrying': [
    'Another worker has taken it over (`reason`), or a model call is retried after a delay.',
    ['attempt', 'reason', 'retry_in_seconds'],
  ],
  'task.completed': ['It completed.', ['output', 'usage']],
  'task.failed': ['It failed; `output` has the partial answer.', ['error', 'output', 'usage']],
  'task.canceled': [
    'It was canceled. `effects` are calls of tools that took effect, `uncertain` those with an unknown outcome.',
    ['reason', 'effects', 'uncertain', 'cost_usd', 'usage', 'forced'],
  ],
  'task.expired': ['It ran out of time.', ['error', 'output', 'usage']],
  'step.started': ['A step begins: its intent is stored.', ['step_id', 'index', 'type', 'name', 'attempt']],
  'step.completed': ['Its result is stored.', ['step_id', 'index', 'type', 'name', 'model', 'usage']],
  'step.failed': [
    'It failed or was aborted; `will_retry` says whether it is tried again.',
    ['step_id', 'index', 'type', 'name', 'error', 'will_retry', 'retry_after_seconds', 'reason'],
  ],
  'message.completed': [
    'A message of the agent is complete, or a message of a user has arrived (`role` `user`).',
    ['message_id', 'step_id', 'role', 'content', 'tool_calls'],
  ],
  'message.discarded': ['The streamed text of a message is void.', ['message_id', 'step_id']],
  'tool.called': ['The model called a tool.', ['step_id', 'index', 'tool']],
  'tool.completed': ['The call has its result.', ['step_id', 'index', 'tool']],
  'tool.failed': ['The call failed, which the model reads as its result.', ['step_id', 'index', 'tool', 'error']],
  'tool.requested': [
    'The model called a tool on your side. The task waits for the result of `call_id`.',
    ['step_id', 'index', 'tool', 'tool_call_id', 'call_id', 'arguments', 'expires_at'],
  ],
  'tool.resolved': [
    'That call has its result; `error` if it failed or came too late.',
    ['step_id', 'index', 'tool', 'tool_call_id', 'call_id', 'error'],
  ],
  'artifact.created': [
    'A tool stored a file as a result of the task.',
    ['step_id', 'file_id', 'name', 'media_type', 'bytes', 'sha256'],
  ],
  'context.compacted': [
    'The earlier part of the conversation was replaced by a summary, which is the `output` of the step.',
    ['step_id', 'index', 'before_step', 'kept_history'],
  ],
  'approval.requested': [
    'A person must approve a call, or say how an interrupted one ended (`kind` `recovery`).',
    ['approval_id', 'step_id', 'kind', 'tool', 'arguments', 'expires_at'],
  ],
  'approval.resolved': [
    'A person has answered.',
    ['approval_id', 'step_id', 'kind', 'tool', 'decision', 'reason', 'resolved_by'],
  ],
  'approval.expired': [
    'No person answered in time; `on_timeout` says what happens to the call.',
    ['approval_id', 'step_id', 'kind', 'tool', 'on_timeout'],
  ],
  'usage.updated': ['The usage of the task so far.', ['usage']],
  'budget.warning': [
    'A call has spent 80 % of a budget, or its `warn_percent`.',
    ['budget_id', 'scope', 'subject', 'unit', 'limit', 'spent', 'resets_at'],
  ],
  'budget.reached': [
    'A budget does not allow the next call: the task waits until it is raised or resets.',
    ['budget_id', 'scope', 'subject', 'unit', 'limit', 'spent', 'resets_at'],
  ],
  'credential.expired': [
    'A credential of its tools is no longer valid: the task waits until it is connected again.',
    ['credential_id', 'name', 'step_id', 'error'],
  ],
  'model.fallback': ['The next of `fallback_models` takes over.', ['step_id', 'index', 'from', 'to', 'error']],
  'cancel.requested': ['Its worker is asked to cancel it.', ['reason', 'mode']],
}

const liveEventWords: Record<LiveEventType, Words> = {
  'task.snapshot': ['The first frame: the current task.', ['task']],
  'message.snapshot': ['The text so far of the message that is being written.', ['message_id', 'text']],
  'message.delta': ['The next piece of its text.', ['message_id', 'text']],
  'reasoning.delta': ['The reasoning of the model, if its provider returns it.', ['message_id', 'text']],
}

const projectFrameWords: Record<ProjectFrameType, Words> = {
  'project.snapshot': ['The first frame: the current counts.', ['tasks', 'agents', 'resumed']],
  'agent.status': ['The state of an agent after a change, without `data`.', ['agent_id', 'status', 'created_at']],
}

/** Events that webhooks subscribe to, and events of a task. */
export const eventsPage: Page = {
  title: 'Events',
  intro: 'Events of projects and agents, and within a task.',
  sources: [
    'contract/src/events/events.ts',
    'contract/src/events/event-payloads.ts',
    'contract/src/events/task-event-payloads.ts',
    'contract/src/events/event-examples.ts',
    'contract/src/tasks/task-lifecycle.ts',
    'contract/src/events/project-events.ts',
  ],
  body: () => [...webhookSections(), taskSection(), liveSection(), projectSection()].join('\n\n'),
}

function taskSection(): string {
  return section(
    'Events of a task',
    [
      'They are kept as long as their task. `sequence` numbers them from 1 without a gap: it is the `offset` of a page, and',
      `the \`id\` of a frame in a stream. ${codes(taskEventTypes.filter(isTerminalEvent))} are the last of their task, and a`,
      'stream ends with them.',
    ].join('\n'),
    eventTable(taskEventTypes, taskEventWords),
  )
}

function liveSection(): string {
  return section(
    'Frames of a stream only',
    [
      'They are not kept and carry no `id`, so a reader that comes back with `Last-Event-ID` goes on after the last kept',
      'event. They are the same on every process. [Streams](../guides/streams.md) has the protocol.',
    ].join('\n'),
    eventTable(liveEventTypes, liveEventWords),
  )
}

function projectSection(): string {
  return section(
    'Frames of the stream of a project',
    [
      'Beside these it has every event of every task: `sequence`, `task_id`, `agent_id`, `type`, the `status` of the task and',
      '`created_at`, without what the event carries.',
    ].join('\n'),
    eventTable(projectFrameTypes, projectFrameWords),
  )
}

function eventTable<Name extends string>(names: readonly Name[], texts: Record<Name, Words>): string {
  return table(
    ['Event', 'When', '`data`'],
    names.map((name) => [code(name), texts[name][0], codes(texts[name][1])]),
  )
}
