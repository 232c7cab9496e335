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

/** What a worker is to do with a step. */
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

/** Codes of steps that were refused before they began. */
const deniedCodes = new Set(['tool_denied', 'approval_rejected', 'approval_expired', 'approval_mismatch'])

/**
 * Journals that a step begins, unless it is done, waits or is denied. The crash rule decides about one that a worker before began:
 * `safe` and `keyed` steps begin again, of an `unsafe` one a person says what became of it.
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
  // The same request again, or one whose answer got lost: only this worker has started it.
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

/** A key names one step: what else is asked by it is a mistake of the worker's. */
function requireSame(mine: readonly Step[], { name, key }: AskedStep): void {
  const other = mine.find((step) => step.name !== name)
  if (other)
    throw new Problem('step_key_taken', undefined, {
      message: `The key ${JSON.stringify(key)} names a step of ${other.name}, and not of ${name}. Give each step its own key.`,
    })
}

/** The worker makes the call: of the tool only what decides about it is known here. */
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

function tooManySteps({ run, steps, task }: Held, { step }: Planned): TaskError | undefined {
  const isNew = step.index === steps.length
  if (!isNew || steps.length + 1 <= run.stepsMax) return undefined
  return {
    code: 'max_steps_reached',
    message: `The task ${task.id} took ${run.stepsMax} steps without coming to an end.`,
    retryable: false,
    step_id: steps.at(-1)?.id ?? null,
  }
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

/** The result of a step that is done: of the call itself, or of the leave that was refused. */
function resultOf(steps: readonly Step[]): StepAnswer {
  const step = steps.find(({ type }) => type !== 'approval') ?? steps[0]!
  const error = step.error && { code: step.error.code, message: step.error.message }
  const of = { step_id: step.id, attempt: step.attempt }
  if (error && deniedCodes.has(error.code)) return { action: 'denied', ...of, error }
  return { action: 'replay', ...of, output: error ? null : valueOf(step.output), error }
}

/** What a worker gave as a result, as it gave it; of a result that a person stated, its text. */
function valueOf(output: unknown): unknown {
  if (!isObject(output)) return output
  return 'value' in output ? output['value'] : output['content']
}

/** What a worker says became of a step. */
export interface StepResult {
  output?: unknown
  error?: { code: string; message: string } | undefined
  usage?: { input_tokens: number; output_tokens: number; cached_tokens?: number } | undefined
}

/** Writes the result of a step that this lease began. The same result again changes nothing. */
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
    // A worker before began it, and the crash rule decides about it: this one has not asked.
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

/** What a call that the worker made is counted and charged as. */
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
  // The step itself was counted when it began.
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
