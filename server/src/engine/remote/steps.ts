import { isDeepStrictEqual } from 'node:util'
import { isObject } from '#contract/core/merge-patch.ts'
import { notFound, Problem } from '#contract/core/problems.ts'
import type { WaitReason, ToolSafety } from '#contract/tasks/task-lifecycle.ts'
import type { WorkStepAction } from '#contract/tasks/work.ts'
import { costOf, dollarsOf } from '#contract/models/model-prices.ts'
import { cleanText, cleanValue, cutText } from '../../platform/clean-text.ts'
import { redact } from '../../events/agent-log.ts'
import { inputOf, stateOf } from '../journal/call-states.ts'
import { agentHolds, failed, joined } from '../journal/endings.ts'
import { addCall } from '../journal/task-usage.ts'
import { noteWork } from '../journal/work.queries.ts'
import { outOfCalls } from '../run/budget-guard.ts'
import { stepsExceeded } from '../run/run.ts'
import { withCalls } from '../run/run-task.ts'
import { planCall, planned, stepEvents, type Planned } from '../run/tool-plan.ts'
import { toolOutputMax, type Tool } from '../tools/tool.ts'
import type { Step, TaskError } from '../task.ts'
import { checkPolicy } from './endings.ts'
import {
  refuseCanceled,
  underLease,
  type Change,
  type Decision,
  type Held,
  type Lease,
  type RemoteContext,
} from './lease.ts'
import { openWait } from './waits.ts'

/** A step that a worker is about to make. */
export interface AskedStep {
  key: string
  type: 'tool_call' | 'model_call'
  name: string
  input: unknown
  safety: ToolSafety
}

/** What a worker must do with a step. */
export interface StepAnswer {
  action: WorkStepAction
  step_id: string
  attempt: number
  input?: unknown
  idempotency_key?: string
  output?: unknown
  error?: { code: string; message: string } | null
  wait?: { reason: WaitReason; approval_id: string | null }
}

/** Codes of steps that were denied before they started. */
const deniedCodes = new Set(['tool_denied', 'approval_rejected', 'approval_expired', 'approval_mismatch'])

/**
 * Journals the start of a step, unless it is done, waits or is denied. If an earlier worker started it, its safety
 * decides: `safe` and `keyed` steps start again; for an `unsafe` one, a person states the outcome.
 * @throws `step_key_taken`, `task_already_finished` if the task failed at a limit, and the problems of `underLease`
 */
export async function beginStep(context: RemoteContext, lease: Lease, asked: AskedStep): Promise<StepAnswer> {
  const answer = await underLease<StepAnswer | { ended: TaskError }>(
    context,
    lease,
    { journal: true },
    async (held) => {
      refuseCanceled(held.task)
      return decideStep(held, asked)
    },
  )
  if (!('ended' in answer)) return answer
  await checkPolicy(context, lease)
  throw new Problem('task_already_finished', undefined, { message: answer.ended.message })
}

async function decideStep(held: Held, asked: AskedStep): Promise<Decision<StepAnswer | { ended: TaskError }>> {
  const { tx, task, steps, run } = held
  const mine = steps.filter((step) => inputOf(step).tool_call_id === asked.key)
  requireSame(mine, asked)
  const at = stateOf(mine)
  const { attempt } = task
  if (at.state === 'done') return { result: resultOf(mine) }
  // The same request again, or one whose response was lost: this lease has started the step.
  if (at.state === 'started' && inputOf(at.step).claim === attempt) return { result: begunAnswer(at.step) }
  if (agentHolds(task)) return waits(held, agentHolds(task)!, mine.at(-1))
  const tool = toolOf(asked)
  run.toolset = { ...run.toolset, tools: new Map([[asked.name, tool]]) }
  const call = { id: asked.key, name: asked.name, arguments: asked.input ?? {} }
  const plan = planCall(run, task, { call, at }, { index: steps.length, position: 0, argumentError: undefined })
  if (!plan) return waits(held, openWait(mine)?.reason ?? 'approval', mine.at(-1))
  const tooMany = tooManySteps(held, plan)
  if (tooMany) return { change: failed(task, tooMany, progressOf(held)), result: { ended: tooMany } }
  const step = stepOf(plan.step, asked, attempt)
  const counted = withCalls({ usage: task.usage, steps }, [step])
  const usage = asked.type === 'model_call' ? { ...counted, tool_calls: task.usage.tool_calls } : counted
  const more = { steps: usage.steps - task.usage.steps, tool_calls: usage.tool_calls - task.usage.tool_calls }
  if (outOfCalls(task, task.usage, more)) {
    await noteWork(tx, task.id, { waits: true, wants: more })
    return {
      result: {
        action: 'wait',
        step_id: step.id,
        attempt: step.attempt,
        wait: { reason: 'budget', approval_id: null },
      },
    }
  }
  await noteWork(tx, task.id, { waits: plan.approval !== undefined, wants: null })
  const change: Change = {
    usage,
    secrets: run.secrets,
    ...planned({
      steps: [step],
      calls: [],
      approvals: plan.approval ? [plan.approval] : [],
      tool_calls: [],
      delegations: [],
    }),
  }
  return { change, result: answerOf(step) }
}

/**
 * A key identifies one step. Another use of it is a mistake of the worker.
 * @throws `step_key_taken`
 */
function requireSame(mine: readonly Step[], { name, key }: AskedStep): void {
  const other = mine.find((step) => step.name !== name)
  if (other)
    throw new Problem('step_key_taken', undefined, {
      message: `The key ${JSON.stringify(key)} names a step of ${other.name}, and not of ${name}. Give each step its own key.`,
    })
}

/** The worker makes the call, so only the members that decide about it are known here. */
function toolOf({ name, type, safety }: AskedStep): Tool {
  return {
    name,
    description: '',
    parameters: { type: 'object' },
    safety: type === 'model_call' ? 'safe' : safety,
    call: async () => ({ content: '' }),
  }
}

function stepOf(step: Step, { type }: AskedStep, claim: number): Step {
  const input = { ...inputOf(step), claim, is_workers: true as const }
  return { ...step, input, type: step.type === 'tool_call' ? type : step.type }
}

function tooManySteps({ run, steps }: Held, { step }: Planned): TaskError | undefined {
  const isNew = step.index === steps.length
  if (!isNew || steps.length + 1 <= run.stepsMax) return undefined
  return stepsExceeded(run, steps)
}

function progressOf({ steps, task }: Held) {
  return { steps, usage: task.usage, unfinished: '' }
}

async function waits({ tx, task }: Held, reason: WaitReason, step: Step | undefined): Promise<Decision<StepAnswer>> {
  await noteWork(tx, task.id, { waits: true })
  const approval_id = step ? (inputOf(step).approval_id ?? null) : null
  return {
    result: { action: 'wait', step_id: step?.id ?? '', attempt: step?.attempt ?? 1, wait: { reason, approval_id } },
  }
}

function answerOf(step: Step): StepAnswer {
  if (step.status === 'failed') return resultOf([step])
  if (step.type === 'approval' || step.status === 'unknown') {
    const reason = step.type === 'approval' ? 'approval' : 'unknown_outcome'
    const approval_id = inputOf(step).approval_id ?? null
    return { action: 'wait', step_id: step.id, attempt: step.attempt, wait: { reason, approval_id } }
  }
  return begunAnswer(step)
}

function begunAnswer(step: Step): StepAnswer {
  return {
    action: 'begin',
    step_id: step.id,
    attempt: step.attempt,
    input: inputOf(step).arguments,
    idempotency_key: `${step.task_id}:${step.index}`,
  }
}

/** The response for a step that is done: the result of the call, or its denial. */
function resultOf(steps: readonly Step[]): StepAnswer {
  const step = steps.find(({ type }) => type !== 'approval') ?? steps[0]!
  const error = step.error && { code: step.error.code, message: step.error.message }
  const of = { step_id: step.id, attempt: step.attempt }
  if (error && deniedCodes.has(error.code)) return { action: 'denied', ...of, error }
  return { action: 'replay', ...of, output: error ? null : valueOf(step.output), error }
}

/** A worker's result in its original form; for a result that a person stated, its text. */
function valueOf(output: unknown): unknown {
  if (!isObject(output)) return output
  return 'value' in output ? output['value'] : output['content']
}

/** The result of a step as the worker sends it. */
export interface StepResult {
  output?: unknown
  error?: { code: string; message: string } | undefined
  usage?: { input_tokens: number; output_tokens: number; cached_tokens?: number } | undefined
}

/**
 * Writes the result of a step that this lease started. Repeating the same result changes nothing.
 * @throws `step_not_found`, `step_already_finished` for another result, and the problems of `underLease`
 */
export async function finishStep(
  context: RemoteContext,
  lease: Lease,
  step_id: string,
  result: StepResult,
): Promise<{ step_id: string; status: 'completed' | 'failed' }> {
  return underLease(context, lease, { journal: true, ledger: result.usage !== undefined }, async (held) => {
    const { steps, run } = held
    const step = steps.find(({ id, type }) => id === step_id && (type === 'tool_call' || type === 'model_call'))
    if (!step || !inputOf(step).is_workers) throw notFound('step_not_found', 'step', step_id.slice(0, 100))
    const done = finished(step, result, run.secrets)
    const status = done.status as 'completed' | 'failed'
    if (step.status !== 'started') {
      if (step.status !== done.status || !isDeepStrictEqual(step.output, done.output))
        throw new Problem('step_already_finished', {
          resource_type: 'step',
          resource_id: step_id,
          current_status: step.status,
        })
      return { result: { step_id, status } }
    }
    // An earlier worker started the step, and this one has not asked what to do with it.
    if (inputOf(step).claim !== lease.attempt)
      throw new Problem('lease_lost', { resource_type: 'step', resource_id: step_id, current_status: step.status })
    return { change: joined(used(context, held, done, result), resultChange(done)), result: { step_id, status } }
  })
}

function finished(step: Step, { output, error }: StepResult, secrets: readonly string[]): Step {
  if (error) {
    const message = cleanText(redact(error.message, secrets)).slice(0, 2000)
    const why = { code: cleanText(error.code), message, retryable: false }
    return { ...step, status: 'failed', output: { content: message }, error: why }
  }
  const value = cleanValue(output ?? null)
  const text = typeof value === 'string' ? value : (JSON.stringify(value) ?? '')
  return { ...step, status: 'completed', output: { content: cutText(text, toolOutputMax), value }, error: null }
}

function resultChange(step: Step): Change {
  const { error, name } = step
  return {
    steps: [step],
    events: stepEvents(step),
    crashes: 0,
    logs: error
      ? [{ level: 'warn', message: `Step ${name} failed: ${error.message}`, context: { tool: name, code: error.code } }]
      : [],
  }
}

/** The usage and cost of a call that the worker made. */
function used(
  { run: { prices } }: RemoteContext,
  { task }: Pick<Held, 'task'>,
  step: Step,
  { usage }: StepResult,
): Change | undefined {
  if (step.type !== 'model_call')
    return {
      calls: [{ tool: step.name, input_tokens: 0, output_tokens: 0, cached_tokens: 0, cost_usd: 0 }],
      consumed: { tool_calls: 1 },
    }
  if (!usage) return undefined
  const tokens = { cached_tokens: 0, ...usage }
  const price = prices.of(step.name)
  const cost = price && costOf(price, tokens)
  const cost_usd = cost === null ? null : dollarsOf(cost)
  const { input_tokens, output_tokens, cached_tokens } = tokens
  // The step was counted when it started.
  const sum = addCall({ ...task.usage, steps: task.usage.steps - 1 }, step.name, tokens, cost_usd)
  step.model = step.name
  step.usage = { input_tokens, output_tokens, cached_tokens, reasoning_tokens: 0, cost_usd }
  return {
    usage: sum,
    events: [{ type: 'usage.updated', data: { usage: sum } }],
    calls: [{ model: step.name, input_tokens, output_tokens, cached_tokens, cost_usd }],
    consumed: { model_calls: 1, input_tokens, output_tokens },
  }
}
