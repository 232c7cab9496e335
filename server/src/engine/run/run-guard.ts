import { setTimeout as delay } from 'node:timers/promises'
import { canceled, receiptOf } from '../journal/cancel.ts'
import { agentHolds, expired, outputSoFar, waiting } from '../journal/endings.ts'
import type { Decide } from '../journal/journal.ts'
import type { Run } from './run.ts'
import type { CircuitBreaker } from '../models/circuit-breaker.ts'
import type { Cooldown } from '../models/cooldown.ts'
import type { ModelError } from '../models/model.ts'
import type { LockedTask } from '../task.ts'

type Change = ReturnType<Decide>

/** The parts of a process that can keep its tasks from continuing. */
export interface StopContext {
  /** Model tokens that a credential may use per hour (decision D90). */
  tokens_per_hour: number
  /** Random number from 0 to 1. */
  random: () => number
  /** Whether the process stops: no further step starts. */
  isClosing: () => boolean
  /** Cooldowns that providers asked for. */
  cooldown: Cooldown
  /** Circuit breakers of models. */
  circuitBreaker: CircuitBreaker
}

/** A task is requeued at the end of a step after this long, so that others get their turn and no lease grows old. */
const claim_ms = 3_600_000
/** A cooldown up to this long keeps the worker's slot; for a longer one the task is deferred. */
const heldCooldown_ms = 2000
/**
 * Interval at which such a wait checks whether it is over: the call that went first may be answered or refused earlier.
 */
const cooldownPoll_ms = 100
/** After this many checks (ten seconds), the call is made in any case, because the calls before it got no response. */
const cooldownPollsMax = 100

/**
 * Why a task must not start another step, decided under its lock: it is being canceled, its time is over, its agent may
 * not work, or the process stops. Undefined if nothing prevents it.
 */
export function stopReason(run: Run, task: LockedTask, context: StopContext): Change | undefined {
  const change = findStopReason(run, task, context)
  return change && { secrets: run.secrets, ...change }
}

function findStopReason(run: Run, task: LockedTask, { isClosing }: StopContext): Change | undefined {
  if (task.cancel) return cancelRun(run, task, task.cancel)
  if (run.expired || (task.expires_at !== null && Date.parse(task.expires_at) <= Date.parse(task.now)))
    return expired(task, run)
  const held = agentHolds(task)
  if (held) return waiting(task, held, undefined)
  if (isClosing() || performance.now() - run.claimed_at > claim_ms) return { job: { kind: 'back' } }
  return undefined
}

/** Before a model call: whether its credential has tokens left this hour (decision D90). */
export function outOfTokens(task: LockedTask, { tokens_per_hour, random }: StopContext): Change | undefined {
  if (task.tokens_used < tokens_per_hour) return undefined
  const hour_ms = 3_600_000
  // With jitter over the first seconds of the hour, so that tasks do not continue at the same time.
  const next = new Date((Math.floor(Date.parse(task.now) / hour_ms) + 1) * hour_ms + Math.floor(random() * 5000))
  return {
    ...waiting(task, 'budget', next),
    logs: [
      {
        level: 'warn',
        message: `Waiting for the next hour: the credential has used its ${tokens_per_hour} model tokens`,
        context: { tokens_used: task.tokens_used, until: next.toISOString() },
      },
    ],
  }
}

/**
 * Before a model call: whether its provider asked for a long cooldown, or another call is testing now whether the model
 * answers again. Such a wait does not count as a failure of the task.
 */
export function coolingDown(task: LockedTask, model: string | undefined, context: StopContext): Change | undefined {
  const tried_ms = model === undefined ? 0 : context.circuitBreaker.tried_ms(model)
  if (tried_ms > 0) return waiting(task, 'provider', new Date(Date.parse(task.now) + tried_ms * (1 + context.random())))
  const left_ms = cooldownLeft_ms(model, context)
  if (left_ms <= heldCooldown_ms) return undefined
  // With jitter, so that tasks do not continue at the same time.
  const spread_ms = Math.max(1000, left_ms / 10) * context.random()
  return waiting(task, 'provider', new Date(Date.parse(task.now) + left_ms + spread_ms))
}

/**
 * Waits for the end of a short cooldown: until another call has shown that the model answers, or the time is over. If
 * the provider asks for another cooldown meanwhile, the result is the error of the call. It counts as one of the task's
 * attempts; otherwise a task without a time limit would never end. An abort ends the wait, and the caller handles it.
 */
export async function waitForCooldown(
  model: string | undefined,
  { cooldown }: StopContext,
  signal: AbortSignal,
): Promise<ModelError | undefined> {
  if (model === undefined) return undefined
  let asked_until: number | undefined
  for (let looks = 0; looks < cooldownPollsMax && !signal.aborted; looks++) {
    const leave = cooldown.enter(model)
    if (leave.mayAsk) return undefined
    if (leave.left_ms > heldCooldown_ms || (asked_until !== undefined && leave.asked_until !== asked_until))
      return leave.refusal
    asked_until = leave.asked_until
    await delay(Math.min(leave.left_ms, cooldownPoll_ms), undefined, { signal }).catch(() => {})
  }
  return undefined
}

function cooldownLeft_ms(model: string | undefined, { cooldown }: StopContext): number {
  const until = model === undefined ? undefined : cooldown.until(model)
  return until === undefined ? 0 : until - Date.now()
}

function cancelRun(run: Run, task: LockedTask, request: NonNullable<LockedTask['cancel']>): Change {
  const { task: _task, ...change } = canceled({ ...task, usage: run.usage }, request, receiptOf(run.steps))
  return { ...change, usage: run.usage, output: outputSoFar(run), job: { kind: 'end' } }
}
