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
  paused: 'accepts tasks and begins none; what runs stops after its current step',
  stopped: 'accepts no tasks; what ran waits at its last finished step',
  error: 'its configuration cannot be read, or its tasks failed one after the other: it accepts no tasks',
  updating: 'changed and returning to its earlier state; ends automatically, normally at once',
}

const taskWords: Record<TaskState, string> = {
  queued: 'accepted, not begun',
  running: 'a worker has it',
  waiting: 'put aside, and held by no worker; `wait.reason` says for what',
  completed: 'ended well, with an output',
  failed: 'ended badly, with an error',
  canceled: 'ended by a request to cancel it',
  expired: 'its time was over: `queue_ttl_seconds` before it began, or `timeout_seconds` after',
}

const waitWords: Record<WaitReason, string> = {
  approval: 'a person must allow a call first',
  input: 'the user must answer first',
  tool: 'a tool on your side must give its result first',
  child: 'tasks that it delegated must end first',
  budget: 'a budget or the tokens of the hour are spent; it goes on when the budget is raised or begins anew',
  credential: 'a credential of its tools must be connected, or its issuer does not answer',
  unknown_outcome: 'a crash cut a call off, and a person must say what became of it',
  provider: 'the provider of its model failed; the next try is at `wait.until`',
  agent_paused: 'its agent is paused',
  agent_stopped: 'its agent is stopped or in error',
  timer: 'it asked to wait, until `wait.until`',
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
  started: 'the intent is stored, and the call under way',
  completed: 'the result is stored',
  failed: 'the call failed; the error is stored',
  unknown: 'a crash interrupted the call, and its outcome is unknown',
}

/** States of agents, tasks and steps, and what moves them. */
export const lifecyclesPage: Page = {
  title: 'Life cycles',
  intro: 'The states of agents, tasks and steps, and every move between them: there are no others.',
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
        code(settlesTo(state)) || 'where the update before would have led',
      ]),
    ),
  )
}

function agentActionTable(): string {
  const settled = agentStates.filter((state) => state !== 'creating' && state !== 'updating')
  return section(
    'Actions on an agent',
    [
      'An agent that is there already stays as it is, and the action succeeds. `creating` and `updating` are ended first, so',
      'an action right after a change works. Anything else is 409 `resource_conflict`.',
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
    'A task that has ended never changes again. Statistics and metrics count it as the last column says.',
    table(
      ['Status', 'Meaning', 'Can become', 'Counted as'],
      taskStates.map((state) => [
        code(state),
        taskWords[state],
        codes(taskMoves[state]) || 'nothing: the end',
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
      ['`wait.reason`', 'What keeps it'],
      waitReasons.map((reason) => [code(reason), waitWords[reason]]),
    ),
  )
}

function stepTable(): string {
  return section(
    'Steps of a task',
    'The journal of a task. After a crash the task goes on behind its last finished step.',
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
