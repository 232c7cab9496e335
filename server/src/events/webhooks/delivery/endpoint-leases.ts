import type { AttemptResult, RestingLease, TakenLease, WantedLease } from './delivery-store.ts'
import { isOverloaded, isSuccess, isTrouble, requestsAtOnce, slow_ms } from '../webhook-health.ts'

/** Bounds of one process. */
export interface LeaseBounds {
  /** Maximum number of concurrent requests. */
  requests: number
  /** The share of them for webhooks whose last request failed or was slow. */
  requestsTroubled: number
  /** Maximum number of owned leases, apart from those of such webhooks. */
  leases: number
  /** Maximum number of leases of such webhooks. */
  leasesTroubled: number
}

/** How long a healthy lease may send while others may wait for a lease. */
const turn_ms = 1000

export const leaseBounds: LeaseBounds = { requests: 512, requestsTroubled: 256, leases: 2048, leasesTroubled: 512 }

/** A lease that this process owns. */
interface EndpointLease {
  webhook_id: string
  /** Deliveries that are being sent or wait for the write of their result, with their start. */
  sending: Map<string, number>
  /** The last request succeeded, since this process took the lease. */
  isProven: boolean
  /** The last request failed or was slow. */
  isTroubled: boolean
  isSlowed: boolean
  /** Nothing more was due at the last look. */
  isWaiting: boolean
  /** One of its requests has ended since this process took it. */
  hadTurn: boolean
  /** Start of its first request since this process took it. */
  began_ms: number | undefined
}

/**
 * The endpoint leases that one process owns, and which of them may send. Each webhook stays within its limit, and they
 * take turns. Troubled ones share a part of all requests, so healthy receivers are served at once even if many others
 * are dead or slow. Callers pass in the time.
 */
export class EndpointLeases {
  readonly #bounds: LeaseBounds
  /** In the order of their turns. */
  readonly #leases = new Map<string, EndpointLease>()

  constructor(bounds: LeaseBounds = leaseBounds) {
    this.#bounds = bounds
  }

  get size(): number {
    return this.#leases.size
  }

  /** Number of requests in flight, including those whose result is not written yet. */
  get requests(): number {
    let all = 0
    for (const { sending } of this.#leases.values()) all += sending.size
    return all
  }

  /** How many leases may be taken: at most as many as there is room for requests. */
  room(now_ms: number): { healthy: number; troubled: number } {
    const use = this.#use(now_ms)
    const min = (...bounds: number[]): number => Math.max(0, Math.min(...bounds))
    return {
      healthy: min(this.#bounds.requests - use.requests, this.#bounds.leases - use.leases),
      troubled: min(
        this.#bounds.requests - use.requests,
        this.#bounds.requestsTroubled - use.requestsTroubled,
        this.#bounds.leasesTroubled - use.leasesTroubled,
      ),
    }
  }

  /** Adds taken leases. One that was lost and taken again still has its requests in flight. */
  add(taken: readonly TakenLease[]): void {
    for (const { webhook_id, is_troubled } of taken) {
      const known = this.#leases.get(webhook_id)
      if (known) known.isWaiting = false
      else
        this.#leases.set(webhook_id, {
          webhook_id,
          sending: new Map(),
          isProven: false,
          isTroubled: is_troubled,
          isSlowed: false,
          isWaiting: false,
          hadTurn: false,
          began_ms: undefined,
        })
    }
  }

  /**
   * What to look for in leases that may send, as far as there is room for requests. Leases that get some go last next
   * time.
   */
  wanted(now_ms: number): WantedLease[] {
    const use = this.#use(now_ms)
    let free = this.#bounds.requests - use.requests
    let freeTroubled = this.#bounds.requestsTroubled - use.requestsTroubled
    const wanted: WantedLease[] = []
    for (const lease of this.#leases.values()) {
      if (free <= 0) break
      if (lease.isWaiting) continue
      const isTroubled = isInTrouble(lease, now_ms)
      const own = requestsAtOnce(lease) - lease.sending.size
      const count = Math.min(own, free, isTroubled ? freeTroubled : Infinity)
      if (count <= 0) continue
      free -= count
      if (isTroubled) freeTroubled -= count
      wanted.push({ webhook_id: lease.webhook_id, count, except: [...lease.sending.keys()] })
    }
    for (const { webhook_id } of wanted) this.#moveLast(webhook_id)
    return wanted
  }

  /** A request starts. */
  begin(webhook_id: string, delivery_id: string, now_ms: number): void {
    const lease = this.#leases.get(webhook_id)
    if (!lease) return
    lease.sending.set(delivery_id, now_ms)
    lease.began_ms ??= now_ms
  }

  /** The result of a request is written, or will never be. */
  end(webhook_id: string, delivery_id: string): void {
    const lease = this.#leases.get(webhook_id)
    if (!lease) return
    lease.sending.delete(delivery_id)
    lease.isWaiting = false
    lease.hadTurn = true
  }

  /** Learns from the result of a request. */
  learn(result: Pick<AttemptResult, 'webhook_id' | 'status' | 'error' | 'duration_ms'>): void {
    const lease = this.#leases.get(result.webhook_id)
    if (!lease) return
    lease.isProven = isSuccess(result)
    lease.isTroubled = isTrouble(result)
    lease.isSlowed ||= isOverloaded(result.status)
  }

  setSlowed(webhook_id: string, isSlowed: boolean): void {
    const lease = this.#leases.get(webhook_id)
    if (lease) lease.isSlowed = isSlowed
  }

  /** Nothing more is due: the lease rests until it is woken or one of its requests ends. */
  wait(webhook_id: string): void {
    const lease = this.#leases.get(webhook_id)
    if (lease) lease.isWaiting = true
  }

  wake(webhook_ids: readonly string[]): void {
    for (const id of webhook_ids) {
      const lease = this.#leases.get(id)
      if (lease) lease.isWaiting = false
    }
  }

  /** Leases that rest. */
  waiting(): string[] {
    return [...this.#leases.values()].filter(({ isWaiting }) => isWaiting).map(({ webhook_id }) => webhook_id)
  }

  resting(webhook_ids: readonly string[]): RestingLease[] {
    return webhook_ids.flatMap((id) => {
      const lease = this.#leases.get(id)
      return lease ? [{ webhook_id: id, except: [...lease.sending.keys()] }] : []
    })
  }

  /**
   * Leases to return although they have due deliveries, because others may be waiting for a turn. They go to the end of
   * the queue, where other processes find them too. Troubled ones are returned after one request, others after a
   * second: a backlog of thousands of healthy webhooks must not block the rest.
   */
  surplus(now_ms: number): string[] {
    const use = this.#use(now_ms)
    return [...this.#surplusHealthy(use, now_ms), ...this.#surplusTroubled(use, now_ms)]
  }

  #surplusHealthy({ leases }: { leases: number }, now_ms: number): string[] {
    if (leases < this.#bounds.leases) return []
    return [...this.#leases.values()]
      .filter(({ sending, began_ms }) => sending.size === 0 && began_ms !== undefined && now_ms - began_ms >= turn_ms)
      .filter((lease) => !isInTrouble(lease, now_ms))
      .map(({ webhook_id }) => webhook_id)
  }

  #surplusTroubled({ leasesTroubled }: { leasesTroubled: number }, now_ms: number): string[] {
    const excess = leasesTroubled - this.#bounds.leasesTroubled
    if (excess < 0) return []
    const idle = [...this.#leases.values()].filter((lease) => isInTrouble(lease, now_ms) && lease.sending.size === 0)
    const served = idle.filter(({ hadTurn }) => hadTurn)
    return [...served, ...idle.filter(({ hadTurn }) => !hadTurn).slice(0, Math.max(0, excess - served.length))].map(
      ({ webhook_id }) => webhook_id,
    )
  }

  all(): string[] {
    return [...this.#leases.keys()]
  }

  /**
   * A lease was returned or lost. It is kept while something is being sent, so that this counts if the lease comes
   * back.
   */
  remove(webhook_id: string): void {
    const lease = this.#leases.get(webhook_id)
    if (!lease) return
    if (lease.sending.size === 0) this.#leases.delete(webhook_id)
    else lease.isWaiting = true
  }

  #moveLast(webhook_id: string): void {
    const lease = this.#leases.get(webhook_id)
    if (!lease) return
    this.#leases.delete(webhook_id)
    this.#leases.set(webhook_id, lease)
  }

  #use(now_ms: number) {
    const use = { requests: 0, requestsTroubled: 0, leases: 0, leasesTroubled: 0 }
    for (const lease of this.#leases.values()) {
      use.requests += lease.sending.size
      if (isInTrouble(lease, now_ms)) {
        use.requestsTroubled += lease.sending.size
        use.leasesTroubled += 1
      } else use.leases += 1
    }
    return use
  }
}

/** Also while a slow request has no result yet. The first request of a lease is the oldest. */
function isInTrouble({ isTroubled, sending }: EndpointLease, now_ms: number): boolean {
  if (isTroubled) return true
  const [oldest] = sending.values()
  return oldest !== undefined && now_ms - oldest > slow_ms
}
