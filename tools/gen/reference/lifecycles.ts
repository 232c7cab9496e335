import {
  agentActions,
  agentMoves,
  agentStates,
  allowedActions,
  settlesTo,
  type AgentState,
} from '#contract/resources/agent-lifecycle.ts'
import {
  agentWaitReasons,
  countedAs,
  stepStates,
  stepTypes,
  taskMoves,
  taskStates,
  waitReasons,
  type StepState,
  type StepType,
  type TaskState,
  type WaitReason,
} from '#contract/tasks/task-lifecycle.ts'
import { code, codes, section, table, type Page } from './markdown.ts'

const agentWords: Record<AgentState, string> = {
  creating: 'created and not checked yet; ends automatically, normally at once',
  running: 'works on its tasks',
  paused: 'accepts tasks and starts none; running tasks wait after their current step',
  stopped: 'accepts no tasks; running tasks wait at their last finished step',
  error: 'accepts no tasks: its configuration cannot be read, or several tasks in a row failed',
  updating: 'changed and returning to its earlier state; ends automatically, normally at once',
}

const taskWords: Record<TaskState, string> = {
  queued: 'accepted, not started',
  running: 'a worker runs it',
  waiting: 'waits without a worker; `wait.reason` says for what',
  completed: 'ended with an output',
  failed: 'ended with an error',
  canceled: 'ended by a request to cancel it',
  expired: 'ran out of time: `queue_ttl_seconds` before its start, or `timeout_seconds` after it',
}

const waitWords: Record<WaitReason, string> = {
  approval: 'a person must allow a call first',
  input: 'the user must answer first',
  tool: 'a tool on your side must give its result first',
  child: 'tasks that it delegated must end first',
  budget:
    'a budget or the tokens of the hour are spent; it continues when the budget is raised or its next window begins',
  credential: 'a credential of its tools must be connected, or its issuer does not answer',
  unknown_outcome: 'a crash interrupted a call, and a person must say how it ended',
  provider: 'the provider of its model failed; the next attempt is at `wait.until`',
  agent_paused: 'its agent is paused',
  agent_stopped: 'its agent is stopped or in error',
  timer: 'the agent called `wait`, until `wait.until`',
  worker: 'a worker on your side must claim it, from the queue `wait.queue`',
}

const stepWords: Record<StepType, string> = {
  model_call: 'one call of a model',
  tool_call: 'one call of a tool',
  approval: 'a decision of a person',
  wait: 'a pause that the agent asked for',
  compaction: 'the earlier part of a long conversation is replaced by a summary',
}

const stepStateWords: Record<StepState, string> = {
  started: 'the intent is stored, and the call is running',
  completed: 'the result is stored',
  failed: 'the call failed; the error is stored',
  unknown: 'a crash interrupted the call, and its outcome is unknown',
}

/** States of agents, tasks and steps, and what moves them. */
export const lifecyclesPage: Page = {
  title: 'Life cycles',
  intro: 'All states of agents, tasks and steps, and all transitions between them.',
  sources: ['contract/src/resources/agent-lifecycle.ts', 'contract/src/tasks/task-lifecycle.ts'],
  body: () => [agentStateTable(), agentActionTable(), taskTable(), waitTable(), stepTable()].join('\n\n'),
}

function agentStateTable(): string {
  return section(
    'States of an agent',
    table(
      ['Status', 'Meaning', 'Can become', 'An update leads back to'],
      agentStates.map((state) => [
        code(state),
        agentWords[state],
        codes(agentMoves[state]),
        code(settlesTo(state)) || 'the state that the earlier update would have led to',
      ]),
    ),
  )
}

function agentActionTable(): string {
  const settled = agentStates.filter((state) => state !== 'creating' && state !== 'updating')
  return section(
    'Actions on an agent',
    [
      'If the agent is already in the target state, the action succeeds and changes nothing. The service first ends `creating` and',
      '`updating`, so an action right after a change works. Any other case is 409 `resource_conflict`.',
    ].join('\n'),
    table(
      ['Action', 'From', 'To', 'Succeeds in'],
      Object.entries(agentActions).map(([action, { from, to }]) => [
        code(action),
        codes(from),
        code(to),
        codes(settled.filter((state) => (allowedActions(state) as string[]).includes(action))),
      ]),
    ),
  )
}

function taskTable(): string {
  return section(
    'States of a task',
    'A task that has ended never changes again. The last column shows how statistics and metrics count it.',
    table(
      ['Status', 'Meaning', 'Can become', 'Counted as'],
      taskStates.map((state) => [
        code(state),
        taskWords[state],
        codes(taskMoves[state]) || 'nothing: final',
        code(countedAs[state] ?? undefined) || 'neither',
      ]),
    ),
  )
}

function waitTable(): string {
  return section(
    'What a task waits for',
    `Waits for ${codes(agentWaitReasons)} end when the agent runs again.`,
    table(
      ['`wait.reason`', 'Meaning'],
      waitReasons.map((reason) => [code(reason), waitWords[reason]]),
    ),
  )
}

function stepTable(): string {
  return section(
    'Steps of a task',
    'The journal of a task. After a crash the task continues after its last finished step.',
    table(
      ['Type', 'Meaning'],
      stepTypes.map((type) => [code(type), stepWords[type]]),
    ),
    table(
      ['Status', 'Meaning'],
      stepStates.map((state) => [code(state), stepStateWords[state]]),
    ),
  )
}
