import type { Logger } from 'pino'
import { startPeriodic } from '../../platform/periodic.ts'
import type { Sql } from '../../platform/postgres/database.ts'
import type { Egress } from '../../platform/egress/safe-fetch.ts'
import type { Secrets } from '../../platform/crypto/secrets.ts'
import { writeAttempts } from './delivery/attempts.queries.ts'
import { Delivery } from './delivery/deliver.ts'
import type { AttemptResult } from './delivery/delivery-store.ts'
import { openDeliveries } from './delivery/deliveries.queries.ts'
import { matchEvents } from './match-events.ts'
import { sendWebhook } from './delivery/send-webhook.ts'
import { onWebhookSignal } from '../webhook-signals.ts'

/** Poll interval for events without a signal, for example of a dead process. */
const pollInterval_ms = 500
/** How long a stop waits for requests in flight. */
const stop_ms = 5000

export interface WebhookOptions {
  sql: Sql
  log: Logger
  egress: Pick<Egress, 'fetch'>
  secrets: Pick<Secrets, 'decrypt'>
  /** Owns endpoint leases while it has a row in `worker`. */
  worker_id: string
  version: string
  /** From 0 to 1. */
  random?: () => number
  /** Called after every attempt. */
  onAttempt?: (result: AttemptResult) => void
}

/** Delivers events to webhooks. */
export interface Webhooks {
  /**
   * Starts nothing more, waits a while for requests in flight, and leaves the rest to other processes or the next
   * start.
   */
  stop(): Promise<void>
}

/**
 * Every process matches new events and delivers for the endpoint leases that it owns. Both find their work in the
 * database; a signal of this process only speeds it up.
 */
export function startWebhooks(options: WebhookOptions): Webhooks {
  const { sql, log, worker_id, random = Math.random, onAttempt } = options
  const delivery = new Delivery({
    store: {
      ...openDeliveries(sql, worker_id),
      write: (results) => writeAttempts(sql, worker_id, results, random),
    },
    async send(due, attempt) {
      const result = await sendWebhook(options, due, attempt)
      onAttempt?.(result)
      return result
    },
    log,
  })
  let isStopped = false
  const match = async (): Promise<void> => {
    for (let more = true; more && !isStopped;) ({ more } = await matchEvents(sql))
  }
  const matching = startPeriodic(match, {
    every_ms: pollInterval_ms,
    first_ms: 0,
    onError: (error) =>
      log.warn({ err: error }, 'events could not be matched with webhooks; they will be matched again'),
  })
  const forget = [onWebhookSignal('event', matching.now), onWebhookSignal('due', () => delivery.look())]
  delivery.start()
  return {
    async stop() {
      for (const one of forget) one()
      isStopped = true
      await matching.stop()
      await delivery.stop(stop_ms)
    },
  }
}
