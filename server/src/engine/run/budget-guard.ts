import type { ModelFacts } from '#contract/models/model-facts.ts'
import { budgetFacts, tightestUnit, type BudgetUnit, type ReservationResult } from '../budgets/budgets.ts'
import { compactionRequest } from './compaction.ts'
import { conversation, type ModelCallInput } from '../conversation/conversation.ts'
import { failed } from '../journal/endings.ts'
import { estimateInput } from '../conversation/estimate.ts'
import type { Decide } from '../journal/journal.ts'
import { factsOf, priceOf } from './model-call.ts'
import type { ModelSource } from '../models/model.ts'
import { answerTokens } from '../models/dials.ts'
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
/** Whether a call of a model may begin: with what it holds, or what becomes of its task instead. */
export type Room =
  | { begins: true; hold: Reservation | null; max_output_tokens: number | undefined }
  | { begins: false; change: Change; error?: TaskError }

/**
 * Reserves what a call of a model may use of all budgets of its task. Seen under the locks of the task and its budgets, so
 * however many tasks share a budget, what they use together stays within it. `ended` are calls whose results are written
 * with this.
 */
export function askRoom(
  run: Run,
  task: LockedTask,
  step: Step,
  { models: ofService, prices, ended }: { models: ModelSource; prices: Prices; ended: readonly CallUse[] },
): Room {
  const models = run.models ?? ofService
  const price = priceOf(models, prices, step.name)
  // The call itself tells what is wrong with the name, and costs nothing.
  if (price === undefined) return { begins: true, hold: null, max_output_tokens: undefined }
  const over = overLimit(task, run.usage, { steps: 1, tool_calls: 0 })
  if (over) return { begins: false, change: waitForOwn(task, run.usage, over, { steps: 1, tool_calls: 0 }) }
  const facts = factsOf(models, step.name)
  // A summary is not an answer of the agent's: its dials do not count.
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

/** Before calls of tools: what becomes of a task whose own limits do not allow so many; undefined where they do. */
export function outOfCalls(task: LockedTask, usage: TaskUsage, wanted: Omit<Needs, 'call'>): Change | undefined {
  const over = wanted.steps > 0 ? overLimit(task, usage, wanted) : undefined
  return over && waitForOwn(task, usage, over, wanted)
}

/** The limit of a task's own that does not allow so many further steps and calls of tools. */
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

/** What the agent did not get of its `max_tokens`, and why. */
function loweredWarnings(
  model: string,
  { max_tokens, max_output_tokens, lowered }: { max_tokens: number; max_output_tokens: number; lowered: boolean },
): CallWarning[] {
  const warning = (message: string): CallWarning => ({ model, feature: 'max_tokens', message })
  return [
    ...(lowered
      ? [warning(`${model} gives at most ${max_tokens} tokens in one answer; max_tokens is lowered to that.`)]
      : []),
    ...(max_output_tokens < max_tokens
      ? [warning(`A budget leaves ${model} less than max_tokens for an answer; it is bounded to what is left.`)]
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

/**
 * A limit in dollars cannot be kept for a call of unknown cost. Neither a higher limit nor the next window would change
 * that, so the task fails instead of waiting forever.
 */
function unpriced(run: Run, task: LockedTask, { id, name }: Step): Room {
  const error: TaskError = {
    code: 'price_unknown',
    message: unknownPrice(name),
    retryable: false,
    step_id: run.steps.some((step) => step.id === id) ? id : null,
  }
  return { begins: false, change: failed(task, error, run), error }
}

function waitForRoom(
  task: LockedTask,
  refused: Extract<ReservationResult, { outcome: 'refused' }>,
  needs: Needs,
): Change {
  const { by, passing, resets_at } = refused
  const change = waitForBudget(task, passing ? null : resets_at, needs)
  // Other calls hold what is left: that is no news.
  return passing ? change : withBudgetEvent(change, budgetFacts(by, tightestUnit(by, needs.call!)))
}

function waitForOwn(task: LockedTask, usage: TaskUsage, unit: 'steps' | 'tool_calls', needs: Needs): Change {
  const limit = (unit === 'steps' ? task.budget.max_steps : task.budget.max_tool_calls) ?? 0
  const of = { budget_id: null, scope: 'task' as const, subject: task.id, resets_at: null }
  return withBudgetEvent(waitForBudget(task, null, needs), { ...of, unit, limit, spent: usage[unit] })
}

/** Puts a task aside until its budgets have room: it is found by what it holds, which is nothing but what it needs. */
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
