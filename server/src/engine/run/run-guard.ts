import { setTimeout as delay } from 'node:timers/promises'
import { canceled, receiptOf } from '../journal/cancel.ts'
import { lastText } from '../conversation/conversation.ts'
import { agentHolds, expired, waiting, withArtifacts } from '../journal/endings.ts'
import type { Decide } from '../journal/journal.ts'
import type { Run } from './run.ts'
import type { CircuitBreaker } from '../models/circuit-breaker.ts'
import type { Cooldown } from '../models/cooldown.ts'
import type { ModelError } from '../models/model.ts'
import type { LockedTask, TaskOutput } from '../task.ts'

type Change = ReturnType<Decide>

/** What keeps tasks of a process from going on, beside themselves. */
export interface StopContext {
  /** Model tokens a credential may use an hour (decision D90). */
  tokens_per_hour: number
  /** 0 to 1. */
  random: () => number
  /** Whether the process stops: no further step begins. */
  isClosing: () => boolean
  /** When providers asked to be left alone. */
  cooldown: Cooldown
  /** Which models do not answer. */
  circuitBreaker: CircuitBreaker
}

/** A task is given back at a step's boundary after this long: others get their turn, and no lease grows old. */
const claim_ms = 3_600_000
/** Cooldowns up to this long keep the worker's slot; for longer ones the task is put aside. */
const heldCooldown_ms = 2000
/** How often such a wait checks whether it is over: the call that went first may be answered or refused earlier. */
const cooldownPoll_ms = 100
/** After so many looks, ten seconds, it asks whatever is known: those that went before it are all silent. */
const cooldownPollsMax = 100

/**
 * Why a task must not begin anything further, decided under its lock: it is being canceled, its time is over, its agent
 * may not work, or the process stops. Undefined where nothing prevents it.
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

/** Before a call of a model: whether its credential has tokens left in this hour (decision D90). */
export function outOfTokens(task: LockedTask, { tokens_per_hour, random }: StopContext): Change | undefined {
  if (task.tokens_used < tokens_per_hour) return undefined
  const hour_ms = 3_600_000
  // Spread over the first seconds of the hour, so that not all come back in the same moment.
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
 * Before a model call: whether its provider asked for a long cooldown, or another call probes now whether it answers
 * again. Such a wait does not count as a failure of the task.
 */
export function coolingDown(task: LockedTask, model: string | undefined, context: StopContext): Change | undefined {
  const tried_ms = model === undefined ? 0 : context.circuitBreaker.tried_ms(model)
  if (tried_ms > 0) return waiting(task, 'provider', new Date(Date.parse(task.now) + tried_ms * (1 + context.random())))
  const left_ms = cooldownLeft_ms(model, context)
  if (left_ms <= heldCooldown_ms) return undefined
  // Spread over what follows, so that not all come back in the same moment.
  const spread_ms = Math.max(1000, left_ms / 10) * context.random()
  return waiting(task, 'provider', new Date(Date.parse(task.now) + left_ms + spread_ms))
}

/**
 * Waits until the model may be asked, which is a moment after others made sure, and takes leave to ask it. Gives what the
 * call fails of instead where its provider asks for patience once more meanwhile: it counts as one of the task's tries, or
 * a task without a limit of time would never end. An abort ends the wait, and what it means is seen later.
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
  return { ...change, usage: run.usage, output: partialOutput(run), job: { kind: 'end' } }
}

function partialOutput(run: Run): TaskOutput | null {
  const text = lastText(run.steps, run.unfinished)
  return withArtifacts(text === undefined ? null : { content: text, data: null }, run)
}
