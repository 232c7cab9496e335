import type { Sql } from '../platform/database.ts'

/** Those in this process who look for new events, whichever service of it they belong to: a signal is only a hint. */
const listeners = new Set<() => void>()

/** Calls `listener` after commits of this process in which events were written that somebody is to be told of. */
export function onNewEvents(listener: () => void): () => void {
  listeners.add(listener)
  return () => void listeners.delete(listener)
}

/** Belongs to the transaction that writes such events. */
export function tellNewEvents(tx: Sql): void {
  tx.afterCommit(() => listeners.forEach((listener) => listener()))
}
