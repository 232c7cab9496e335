import type { ModelFacts } from '#contract/models/model-facts.ts'
import { budgetFacts, tightestUnit, type BudgetUnit, type ReservationResult } from '../budgets/budgets.ts'
import { compactionRequest } from './compaction.ts'
import { conversation, type ModelCallInput } from '../conversation/conversation.ts'
import { failed } from '../journal/endings.ts'
import { estimateInput } from '../conversation/estimate.ts'
import type { Decide } from '../journal/journal.ts'
import { factsOf, priceOf } from './model-call.ts'
import type { ModelSource } from '../models/model.ts'
import { answerTokens } from '../models/call-settings.ts'
import { type Prices, unknownPrice } from '../budgets/prices.ts'
import type { Run } from './run.ts'
import { offered } from './run-model.ts'
import { nothingReserved, reserveCall } from '../budgets/ledger.ts'
import { outputSchema } from './task-output.ts'
import type {
  LockedTask,
  Wait,
  TaskUsage,
  TaskError,
  Step,
  CallWarning,
  CallUse,
  Reservation,
  Need,
  Needs,
} from '../task.ts'

type Change = ReturnType<Decide>
/** Whether a model call may start, with its reservation; otherwise the change of its task. */
export type Room =
  | { begins: true; hold: Reservation | null; max_output_tokens: number | undefined }
  | { begins: false; change: Change; error?: TaskError }

/**
 * Reserves the maximum cost and tokens of a model call in all budgets of its task. The task and its budgets are locked,
 * so tasks that share a budget never exceed it together. `ended` are calls whose results are part of the same write.
 */
export function askRoom(
  run: Run,
  task: LockedTask,
  step: Step,
  { models: ofService, prices, ended }: { models: ModelSource; prices: Prices; ended: readonly CallUse[] },
): Room {
  const models = run.models ?? ofService
  const price = priceOf(models, prices, step.name)
  // The call itself fails with an error about the name, and costs nothing.
  if (price === undefined) return { begins: true, hold: null, max_output_tokens: undefined }
  const over = overLimit(task, run.usage, { steps: 1, tool_calls: 0 })
  if (over) return { begins: false, change: waitForOwn(task, run.usage, over, { steps: 1, tool_calls: 0 }) }
  const facts = factsOf(models, step.name)
  // A summary is not an answer of the agent, so the agent's settings do not apply.
  const { max_tokens, lowered } = answerTokens(step.type === 'compaction' ? {} : run.work.config, facts)
  const call: Need = {
    input_tokens: task.ledger && task.ledger.budgets.length > 0 ? estimateFor(run, step, facts) : 0,
    max_output_tokens: max_tokens,
    price,
  }
  const reserved = reserveCall(task, ended, call)
  if (reserved.outcome === 'held') {
    const { hold, max_output_tokens = max_tokens } = reserved
    run.warnings = loweredWarnings(step.name, { max_tokens, max_output_tokens, lowered })
    return { begins: true, hold, max_output_tokens }
  }
  if (reserved.outcome === 'unpriced') return unpriced(run, task, step)
  return { begins: false, change: waitForRoom(task, reserved, { steps: 1, tool_calls: 0, call }) }
}

/**
 * Checks the task's limits before tool calls. Returns the change of a task that would exceed one; undefined if all
 * calls are allowed.
 */
export function outOfCalls(task: LockedTask, usage: TaskUsage, wanted: Omit<Needs, 'call'>): Change | undefined {
  const over = wanted.steps > 0 ? overLimit(task, usage, wanted) : undefined
  return over && waitForOwn(task, usage, over, wanted)
}

/** The limit of the task that would be exceeded by these further steps and tool calls; undefined for none. */
export function overLimit(
  { budget }: Pick<LockedTask, 'budget'>,
  usage: TaskUsage,
  { steps, tool_calls }: Omit<Needs, 'call'>,
): 'steps' | 'tool_calls' | undefined {
  const { max_steps, max_tool_calls } = budget
  if (max_steps != null && usage.steps + steps > max_steps) return 'steps'
  if (tool_calls > 0 && max_tool_calls != null && usage.tool_calls + tool_calls > max_tool_calls) return 'tool_calls'
  return undefined
}

/** Warnings that the agent gets less than its `max_tokens`, with the reason. */
function loweredWarnings(
  model: string,
  { max_tokens, max_output_tokens, lowered }: { max_tokens: number; max_output_tokens: number; lowered: boolean },
): CallWarning[] {
  const warning = (message: string): CallWarning => ({ model, feature: 'max_tokens', message })
  return [
    ...(lowered
      ? [warning(`${model} gives at most ${max_tokens} tokens in one answer; max_tokens was lowered to that.`)]
      : []),
    ...(max_output_tokens < max_tokens
      ? [
          warning(
            `A budget leaves ${model} fewer than max_tokens tokens for an answer; max_tokens was lowered to the rest.`,
          ),
        ]
      : []),
  ]
}

function estimateFor(run: Run, step: Step, facts: ModelFacts): number {
  const steps = run.steps.slice(0, step.index)
  if (step.type === 'compaction') {
    const { system_prompt, messages } = compactionRequest(run, step, facts)
    return estimateInput({ messages, system_prompt, tools: [], steps: [] })
  }
  const messages = conversation({ ...run, input: run.work.input, steps }, step.input as ModelCallInput)
  return estimateInput({
    messages,
    system_prompt: run.work.config.system_prompt,
    tools: offered(run),
    output_schema: outputSchema(run),
    steps,
  })
}

function unpriced(run: Run, task: LockedTask, { id, name }: Step): Room {
  const error = priceUnknown(name, run.steps.some((step) => step.id === id) ? id : null)
  return { begins: false, change: failed(task, error, run), error }
}

/**
 * The error of a call of unknown cost under a budget in dollars. Neither a higher limit nor the next window would help,
 * so the task fails instead of waiting forever.
 */
export function priceUnknown(model: string, step_id: string | null): TaskError {
  return {
    code: 'price_unknown',
    message: unknownPrice(model),
    retryable: false,
    step_id,
  }
}

function waitForRoom(
  task: LockedTask,
  refused: Extract<ReservationResult, { outcome: 'refused' }>,
  needs: Needs,
): Change {
  const { by, passing, resets_at } = refused
  const change = waitForBudget(task, passing ? null : resets_at, needs)
  // Only calls in flight hold the rest, so no event is due.
  return passing ? change : withBudgetEvent(change, budgetFacts(by, tightestUnit(by, needs.call!)))
}

function waitForOwn(task: LockedTask, usage: TaskUsage, unit: 'steps' | 'tool_calls', needs: Needs): Change {
  const limit = (unit === 'steps' ? task.budget.max_steps : task.budget.max_tool_calls) ?? 0
  const of = { budget_id: null, scope: 'task' as const, subject: task.id, resets_at: null }
  return withBudgetEvent(waitForBudget(task, null, needs), { ...of, unit, limit, spent: usage[unit] })
}

/** Makes a task wait for its budgets. Its `hold` reserves nothing, and has what the task needs. */
function waitForBudget(task: LockedTask, until: string | null, needs: Needs): Change {
  const wait: Wait = { reason: 'budget', since: task.now, until, approval_ids: [] }
  return {
    status: 'waiting',
    wait,
    job: { kind: 'end' },
    hold: { ...nothingReserved, budget_ids: [], needs },
    events: [{ type: 'task.waiting', data: { wait } }],
  }
}

function withBudgetEvent(
  change: Change,
  facts: { scope: string; subject: string; unit: BudgetUnit; limit: number } & Record<string, unknown>,
): Change {
  const whose = facts.scope === 'task' ? "the task's own budget" : `the budget of ${facts.subject}`
  return {
    ...change,
    events: [{ type: 'budget.reached', data: facts }, ...(change.events ?? [])],
    logs: [
      {
        level: 'warn',
        message: `Waiting for room in ${whose}: its limit of ${facts.limit} ${facts.unit} is reached`,
        context: facts,
      },
    ],
  }
}
