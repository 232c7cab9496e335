import { testEventName } from '#contract/events/events.ts'
import type { AttemptResult } from './delivery-store.ts'
import { attemptsMax, waitAfter } from './delivery-schedule.ts'
import { goneStatus, isOverloaded, isSuccess, mustDisable, slowed_ms } from '../webhook-health.ts'
import type { ErrorOccurred } from '#contract/events/event-payloads.ts'

/** A locked delivery, before the result of its attempt is written. */
export interface AttemptedDelivery {
  id: string
  event: string
  status: 'pending' | 'delivered' | 'failed'
  failure: 'attempts_exhausted' | 'webhook_disabled' | 'gone' | null
  attempts: number
  round_attempts: number
  is_redelivery: boolean
  is_test: boolean
  next_attempt_at: string | null
  finished_at: string | null
}

/** The locked webhook of a delivery. For a successful attempt to a healthy webhook, fewer facts are needed. */
export interface AttemptedWebhook {
  id: string
  org_id: string
  url: string
  status: 'active' | 'disabled'
  created_by: string
  failing_since: string | null
  slowed_until: string | null
  /** Whether an attempt failed between five days and twelve hours ago. */
  failed_before: boolean
}

/** Both after the attempt. */
export interface AfterAttempt {
  delivery: AttemptedDelivery
  webhook: AttemptedWebhook
  /** Why the attempt disables the webhook; its other pending deliveries are then given up. */
  disabled: 'gone' | 'failing' | undefined
  /** Errors for the organization's webhooks; never about the delivery of `error.occurred` (decision D94). */
  errors: ErrorOccurred[]
}

/**
 * Computes what an attempt changes (decision D97). A pure function: `now` is the database's time, `rng` from 0 to 1
 * adds jitter to the waits. A delivery that was given up during the attempt still counts as delivered if the receiver
 * accepted it.
 */
export function afterAttempt(
  delivery: AttemptedDelivery,
  webhook: AttemptedWebhook,
  result: AttemptResult,
  { now, rng }: { now: Date; rng: number },
): AfterAttempt {
  const attempts = delivery.attempts + 1
  if (isSuccess(result)) {
    const finished = {
      status: 'delivered' as const,
      failure: null,
      next_attempt_at: null,
      finished_at: now.toISOString(),
    }
    return {
      delivery: { ...delivery, ...finished, attempts, round_attempts: delivery.round_attempts + 1 },
      webhook: { ...webhook, failing_since: null },
      disabled: undefined,
      errors: [],
    }
  }
  const failed = afterFailure({ ...delivery, attempts }, result, { now, rng })
  const health = afterFailureOf(webhook, delivery, result, now)
  const isSilent = delivery.event === 'error.occurred' || delivery.event === testEventName || delivery.is_test
  const errors: ErrorOccurred[] = []
  if (failed.failure === 'attempts_exhausted' && delivery.failure === null)
    errors.push(gaveUp(failed, webhook, result.error))
  if (health.disabled) errors.push(wasDisabled(webhook, health.disabled))
  return { delivery: endedBy(failed, health.disabled, now), ...health, errors: isSilent ? [] : errors }
}

function afterFailure(
  delivery: AttemptedDelivery,
  { retry_after_ms }: AttemptResult,
  { now, rng }: { now: Date; rng: number },
): AttemptedDelivery {
  // Given up meanwhile: only the attempt is counted.
  if (delivery.status !== 'pending') return delivery
  const round_attempts = delivery.round_attempts + 1
  const wait_ms = waitAfter(round_attempts, { ...(retry_after_ms !== undefined && { retry_after_ms }), rng })
  if (wait_ms === undefined) return { ...givenUp(delivery, 'attempts_exhausted', now), round_attempts }
  return { ...delivery, round_attempts, next_attempt_at: new Date(now.getTime() + wait_ms).toISOString() }
}

/** What a failure means for the webhook. A failure at an address that the webhook no longer has means nothing. */
function afterFailureOf(
  webhook: AttemptedWebhook,
  { is_redelivery, is_test }: AttemptedDelivery,
  { at, status, request_url }: AttemptResult,
  now: Date,
): Pick<AfterAttempt, 'webhook' | 'disabled'> {
  if (webhook.status !== 'active' || webhook.url !== request_url) return { webhook, disabled: undefined }
  const slowed_until = isOverloaded(status) ? new Date(now.getTime() + slowed_ms).toISOString() : webhook.slowed_until
  const counts = !is_redelivery && !is_test
  const failing_since = webhook.failing_since ?? (counts ? at.toISOString() : null)
  const isFailing =
    counts && failing_since !== null && mustDisable({ failing_since, failed_before: webhook.failed_before }, now)
  const disabled = status === goneStatus ? 'gone' : isFailing ? 'failing' : undefined
  return {
    webhook: { ...webhook, slowed_until, failing_since, status: disabled ? 'disabled' : 'active' },
    disabled,
  }
}

function endedBy(delivery: AttemptedDelivery, disabled: AfterAttempt['disabled'], now: Date): AttemptedDelivery {
  if (!disabled || delivery.status !== 'pending') return delivery
  return givenUp(delivery, disabled === 'gone' ? 'gone' : 'webhook_disabled', now)
}

function givenUp(
  delivery: AttemptedDelivery,
  failure: NonNullable<AttemptedDelivery['failure']>,
  now: Date,
): AttemptedDelivery {
  return { ...delivery, status: 'failed', failure, next_attempt_at: null, finished_at: now.toISOString() }
}

function gaveUp({ id, event }: AttemptedDelivery, webhook: AttemptedWebhook, error: string | null): ErrorOccurred {
  return {
    error: {
      code: 'webhook_delivery_failed',
      message: `${event} could not be delivered to a webhook in ${attemptsMax} attempts. The last one: ${error ?? 'no success'}`,
      severity: 'low',
      affected_resources: [webhook.id, id],
    },
    user_id: webhook.created_by,
    request_id: null,
  }
}

function wasDisabled(webhook: AttemptedWebhook, disabled: 'gone' | 'failing'): ErrorOccurred {
  return {
    error: {
      code: 'webhook_disabled',
      message:
        disabled === 'gone'
          ? 'A webhook was disabled: its receiver answered 410.'
          : 'A webhook was disabled: every attempt to reach it failed for 5 days.',
      severity: 'high',
      affected_resources: [webhook.id],
    },
    user_id: webhook.created_by,
    request_id: null,
  }
}
