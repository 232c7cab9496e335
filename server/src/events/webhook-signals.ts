import type { Sql } from '../platform/postgres/database.ts'

/** There are unmatched events; a delivery is due for a webhook. */
export type WebhookSignal = 'event' | 'due'

/** Those in this process who wait for one, whichever service of it they belong to: a signal is only a hint. */
const listeners: Record<WebhookSignal, Set<() => void>> = { event: new Set(), due: new Set() }

/** Calls `listener` after commits of this process that make it so, until the returned function is called. */
export function onWebhookSignal(signal: WebhookSignal, listener: () => void): () => void {
  listeners[signal].add(listener)
  return () => void listeners[signal].delete(listener)
}

/** Belongs to the transaction that makes it so. */
export function signalWebhooks(tx: Sql, signal: WebhookSignal): void {
  tx.afterCommit(() => listeners[signal].forEach((listener) => listener()))
}
