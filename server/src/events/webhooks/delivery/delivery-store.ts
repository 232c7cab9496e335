import type { StoredEvent } from './sign.ts'

/** A lane that this process has taken: it alone sends for the webhook until it gives the lane back. */
export interface TakenLease {
  webhook_id: string
  /** The last request failed or was slow. */
  is_troubled: boolean
}

/** A lane that is asked for what is due in it. */
export interface WantedLease {
  webhook_id: string
  /** Deliveries at most. */
  count: number
  /** Deliveries that are being sent, or whose result is not written yet. */
  except: readonly string[]
}

/** What was found of a lane that is still this process's own. */
export interface FoundLease {
  webhook_id: string
  is_slowed: boolean
  /** By the clock of the database. */
  now: Date
  due: DueDelivery[]
}

/** A delivery to be sent, with all that its request takes. */
export interface DueDelivery {
  id: string
  webhook_id: string
  event_id: string
  /** How many attempts were made before, ever: with the owner of the lane it fences the write of the result. */
  attempts: number
  url: string
  /** Encrypted; the current one first. */
  secrets: Buffer[]
  /** Further headers of push notifications, encrypted; null of others. */
  headers: Buffer | null
  /** Undefined where it is no longer kept. */
  event: StoredEvent | undefined
}

/** An attempt that was made. */
export interface AttemptResult {
  delivery_id: string
  webhook_id: string
  /** How many were made before. */
  attempts: number
  at: Date
  duration_ms: number
  request_url: string
  request_headers: Record<string, string>
  /** Null where there was no answer. */
  status: number | null
  response_headers: Record<string, string> | null
  /** The beginning of the answer. */
  body: Buffer | null
  /** What was wrong, in words for people; null after a success. */
  error: string | null
  retry_after_ms: number | undefined
}

/** A lane for which nothing more was found, or that is given back. */
export interface RestingLease {
  webhook_id: string
  /** Deliveries that are being sent, or whose result is not written yet. */
  except: readonly string[]
}

/** What becomes of a lane: given back, still owned with nothing due, due already, or no longer this process's own. */
export type Rest = 'given_back' | 'waiting' | 'due' | 'lost'

/** What the sender of a process needs of the database; each is one transaction that either happened or did not. */
export interface DeliveryStore {
  /** Takes due leases without an owner; none where this process counts as dead. */
  take(room: { healthy: number; troubled: number }): Promise<TakenLease[]>
  /** Lanes of this process, of those given, in which something has become due. */
  listWoken(webhook_ids: readonly string[]): Promise<string[]>
  /** What is due in lanes, the longest waiting first. A lane that is not among the answers was lost. */
  find(leases: readonly WantedLease[]): Promise<FoundLease[]>
  /** Writes what became of attempts, where the lane is still owned and the delivery had no other attempt meanwhile. */
  write(results: readonly AttemptResult[]): Promise<void>
  /**
   * Sets when lanes are due next, by what is in them. Those with nothing due and nothing being sent are given back; with
   * `leave` all are, and wait their turn again where something is due.
   */
  rest(leases: readonly RestingLease[], options: { leave: boolean }): Promise<Map<string, Rest>>
  /** Frees lanes of processes that are dead. */
  freeDead(): Promise<void>
}
