import type { StoredEvent } from './sign.ts'

/** An endpoint lease that this process has taken: it alone sends to the webhook until it returns the lease. */
export interface TakenLease {
  webhook_id: string
  /** The last request failed or was slow. */
  is_troubled: boolean
}

/** A lease for which due deliveries are requested. */
export interface WantedLease {
  webhook_id: string
  /** Maximum number of deliveries. */
  count: number
  /** Deliveries that are being sent, or whose result is not written yet. */
  except: readonly string[]
}

/** The due deliveries of a lease that this process still owns. */
export interface FoundLease {
  webhook_id: string
  is_slowed: boolean
  /** The database's time. */
  now: Date
  due: DueDelivery[]
}

/** A delivery to send, with everything that its request needs. */
export interface DueDelivery {
  id: string
  webhook_id: string
  event_id: string
  /** Number of earlier attempts. Together with the owner of the lease, it fences the write of the result. */
  attempts: number
  url: string
  /** Encrypted; the current one first. */
  secrets: Buffer[]
  /** Further headers of push notifications, encrypted; null for other webhooks. */
  headers: Buffer | null
  /** Undefined if the event was deleted. */
  event: StoredEvent | undefined
}

/** An attempt that was made. */
export interface AttemptResult {
  delivery_id: string
  webhook_id: string
  /** Number of earlier attempts. */
  attempts: number
  at: Date
  duration_ms: number
  request_url: string
  request_headers: Record<string, string>
  /** Null without a response. */
  status: number | null
  response_headers: Record<string, string> | null
  /** The beginning of the response's body. */
  body: Buffer | null
  /** The error for people; null after a success. */
  error: string | null
  retry_after_ms: number | undefined
}

/** A lease without further due deliveries, or one to return. */
export interface RestingLease {
  webhook_id: string
  /** Deliveries that are being sent, or whose result is not written yet. */
  except: readonly string[]
}

/**
 * The state of a lease afterwards: returned, still owned without due deliveries, due already, or no longer owned by
 * this process.
 */
export type Rest = 'given_back' | 'waiting' | 'due' | 'lost'

/** The database operations of a process that delivers; each is one transaction. */
export interface DeliveryStore {
  /** Takes due leases without an owner; none if this process counts as dead. */
  take(room: { healthy: number; troubled: number }): Promise<TakenLease[]>
  /** Those of the given leases of this process that have become due. */
  listWoken(webhook_ids: readonly string[]): Promise<string[]>
  /** The due deliveries of leases, the longest waiting first. A lease that is missing in the result was lost. */
  find(leases: readonly WantedLease[]): Promise<FoundLease[]>
  /** Writes the results of attempts whose lease is still owned and whose delivery had no other attempt meanwhile. */
  write(results: readonly AttemptResult[]): Promise<void>
  /**
   * Sets when leases are due next, by their deliveries. Leases with nothing due and nothing being sent are returned.
   * With `leave`, all are returned, and those with due deliveries queue again.
   */
  rest(leases: readonly RestingLease[], options: { leave: boolean }): Promise<Map<string, Rest>>
  /** Releases the leases of dead processes. */
  freeDead(): Promise<void>
}
