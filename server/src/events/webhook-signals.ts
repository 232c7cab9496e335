import type { Sql } from '../platform/postgres/database.ts'

/** `event`: there are unmatched events. `due`: a delivery is due for a webhook. */
export type WebhookSignal = 'event' | 'due'

/** Listeners of this process, shared by all services in it: a signal is only a hint. */
const listeners: Record<WebhookSignal, Set<() => void>> = { event: new Set(), due: new Set() }

/** Calls `listener` after commits of this process that signal it, until the returned function is called. */
export function onWebhookSignal(signal: WebhookSignal, listener: () => void): () => void {
  listeners[signal].add(listener)
  return () => void listeners[signal].delete(listener)
}

/** Signals after the commit of the transaction that causes it. */
export function signalWebhooks(tx: Sql, signal: WebhookSignal): void {
  tx.afterCommit(() => listeners[signal].forEach((listener) => listener()))
}
