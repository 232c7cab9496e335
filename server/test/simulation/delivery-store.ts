import { afterAttempt, type AttemptedWebhook } from '../../src/events/webhooks/delivery/after-attempt.ts'
import type {
  AttemptResult,
  DeliveryStore,
  DueDelivery,
  FoundLease,
  Rest,
  RestingLease,
} from '../../src/events/webhooks/delivery/delivery-store.ts'
import { failingMax_ms, failuresApart_ms, isTrouble } from '../../src/events/webhooks/webhook-health.ts'
import type { Rng } from '../rng.ts'
import type { DeliveryWitness } from './delivery-witness.ts'
import type { Transactions } from './transactions.ts'
import type { VirtualTime } from './virtual-time.ts'
import type { DeliveringProcess, StoredDelivery } from './stored.ts'

/** Rules that a test can break on purpose, to check that the simulation finds it. */
export type PlantedDeliveryFault = 'ownership is not checked' | 'waits are ignored' | 'leases rest by an old read'

interface StoredLease {
  due_at: number | null
  owner: string | null
  is_troubled: boolean
}

interface StoredAttempt {
  webhook_id: string
  at: number
  counts: boolean
}

/**
 * What PostgreSQL is to the delivery of webhooks, in memory: the statements of `events/*.queries.ts`, one at a time.
 */
export class SimulatedDeliveryStore {
  readonly events = new Map<string, { isMatched: boolean; isFor: (webhook_id: string) => boolean }>()
  readonly webhooks = new Map<string, AttemptedWebhook>()
  readonly deliveries = new Map<string, StoredDelivery>()
  readonly leases = new Map<string, StoredLease>()
  /** Processes considered alive. */
  readonly workers = new Set<string>()
  readonly #pendingOf = new Map<string, Set<StoredDelivery>>()
  /** The next due delivery of an endpoint at the last check. */
  readonly #seen = new Map<string, number | null>()
  readonly #failures: StoredAttempt[] = []
  readonly #time: VirtualTime
  readonly #rng: Rng
  readonly #transactions: Transactions
  readonly #witness: DeliveryWitness
  readonly #planted: PlantedDeliveryFault | undefined

  constructor(options: {
    time: VirtualTime
    rng: Rng
    transactions: Transactions
    witness: DeliveryWitness
    planted: PlantedDeliveryFault | undefined
  }) {
    this.#time = options.time
    this.#rng = options.rng
    this.#transactions = options.transactions
    this.#witness = options.witness
    this.#planted = options.planted
  }

  /** The store as seen by one process. */
  connect(process: DeliveringProcess): DeliveryStore {
    const run = <T>(work: (commits: (() => void)[]) => T): Promise<T> => this.#transactions.run(process, work)
    const { id: owner } = process
    return {
      take: (room) => run((commits) => this.#take(owner, room, commits)),
      listWoken: (ids) =>
        run(() => ids.filter((id) => this.leases.get(id)?.owner === owner && this.#isDue(this.leases.get(id)!))),
      find: (leases) => run((commits) => leases.flatMap((lease) => this.#find(owner, lease, commits) ?? [])),
      write: (results) => run((commits) => void commits.push(() => this.#write(process, results))),
      rest: (leases, { leave }) =>
        run((commits) => {
          const rests = new Map<string, Rest>()
          for (const lease of leases) {
            const isOld = this.#planted === 'leases rest by an old read' && !leave
            const due_at = isOld ? (this.#seen.get(lease.webhook_id) ?? null) : this.#nextDue(lease, leave)
            const rest = this.#rest(owner, lease, { leave, due_at }, commits)
            if (rest) rests.set(lease.webhook_id, rest)
          }
          return rests
        }),
      freeDead: () => run((commits) => this.#freeDead(owner, commits)),
    }
  }

  /** Like `matchEvents`, for active subscribed webhooks. Returns whether there was any event. */
  match(process: DeliveringProcess): Promise<boolean> {
    return this.#transactions.run(process, (commits) => {
      const events = [...this.events].filter(([, { isMatched }]) => !isMatched)
      for (const [id, event] of events)
        commits.push(() => {
          if (event.isMatched) return
          event.isMatched = true
          for (const webhook of this.webhooks.values())
            if (webhook.status === 'active' && event.isFor(webhook.id)) this.#begin(webhook.id, id)
        })
      return events.length > 0
    })
  }

  /** Like `redeliverNow`. */
  redeliver(delivery: StoredDelivery): void {
    this.#makeDue(delivery.webhook_id)
    const next_attempt_at = this.#iso(this.#time.now)
    const anew = { status: 'pending', next_attempt_at, round_attempts: 0, is_redelivery: true } as const
    this.#keep(Object.assign(delivery, { ...anew, failure: null, finished_at: null }))
    this.#witness.redelivered(delivery.id)
  }

  disable(webhook: AttemptedWebhook, failure: 'webhook_disabled' | 'gone'): void {
    webhook.status = 'disabled'
    this.#giveUp(webhook.id, failure)
  }

  #begin(webhook_id: string, event_id: string): void {
    this.#makeDue(webhook_id)
    const id = `${event_id}/${webhook_id}`
    this.#witness.must(!this.deliveries.has(id), `a webhook gets an event by one delivery: ${id}`)
    this.#keep({
      id,
      webhook_id,
      event_id,
      event: 'project.created',
      status: 'pending',
      failure: null,
      attempts: 0,
      round_attempts: 0,
      is_redelivery: false,
      is_test: false,
      next_attempt_at: this.#iso(this.#time.now),
      finished_at: null,
    })
  }

  #makeDue(webhook_id: string): void {
    const lease = this.leases.get(webhook_id)
    if (!lease) this.leases.set(webhook_id, { due_at: this.#time.now, owner: null, is_troubled: false })
    else lease.due_at = Math.min(lease.due_at ?? Infinity, this.#time.now)
  }

  #isDue({ due_at }: StoredLease): boolean {
    return due_at !== null && due_at <= this.#time.now
  }

  #take(owner: string, room: { healthy: number; troubled: number }, commits: (() => void)[]) {
    if (!this.workers.has(owner)) return []
    const free = [...this.leases]
      .filter(([, lease]) => lease.owner === null && this.#isDue(lease))
      .toSorted(([, a], [, b]) => a.due_at! - b.due_at!)
    const taken = [
      ...free.filter(([, { is_troubled }]) => !is_troubled).slice(0, room.healthy),
      ...free.filter(([, { is_troubled }]) => is_troubled).slice(0, room.troubled),
    ]
    commits.push(() => taken.forEach(([, lease]) => (lease.owner = owner)))
    return taken.map(([webhook_id, { is_troubled }]) => ({ webhook_id, is_troubled }))
  }

  #find(
    owner: string,
    { webhook_id, count, except }: { webhook_id: string; count: number; except: readonly string[] },
    commits: (() => void)[],
  ): FoundLease | undefined {
    const webhook = this.webhooks.get(webhook_id)!
    if (this.leases.get(webhook_id)?.owner !== owner) return undefined
    const now = new Date(this.#time.now)
    const is_slowed = webhook.slowed_until !== null && Date.parse(webhook.slowed_until) > this.#time.now
    if (webhook.status !== 'active') {
      commits.push(() => this.#giveUp(webhook_id, 'webhook_disabled'))
      this.#seen.set(webhook_id, null)
      return { webhook_id, is_slowed, now, due: [] }
    }
    const timestamp = now.toISOString()
    const due = this.#pending(webhook_id, except)
      .filter(({ next_attempt_at }) => next_attempt_at! <= timestamp)
      .slice(0, count)
    this.#seen.set(webhook_id, this.#nextDue({ webhook_id, except: [...except, ...due.map(({ id }) => id)] }, false))
    return {
      webhook_id,
      is_slowed,
      now,
      due: due.map(({ id, event_id, attempts }): DueDelivery => ({
        id,
        webhook_id,
        event_id,
        attempts,
        url: webhook.url,
        secrets: [],
        headers: null,
        event: { type: 'project.created', occurred_at: '', data: {} },
      })),
    }
  }

  #pending(webhook_id: string, except: readonly string[]): StoredDelivery[] {
    return (
      [...(this.#pendingOf.get(webhook_id) ?? [])]
        .filter(({ id }) => !except.includes(id))
        // Times in this form sort like text.
        .toSorted((a, b) => (a.next_attempt_at! < b.next_attempt_at! ? -1 : 1))
    )
  }

  /** Like the index on pending deliveries. */
  #keep(delivery: StoredDelivery): void {
    this.deliveries.set(delivery.id, delivery)
    const pending = this.#pendingOf.get(delivery.webhook_id) ?? new Set()
    this.#pendingOf.set(delivery.webhook_id, pending)
    if (delivery.status === 'pending') pending.add(delivery)
    else pending.delete(delivery)
  }

  #write(process: DeliveringProcess, results: readonly AttemptResult[]): void {
    for (const result of results) {
      const webhook = this.webhooks.get(result.webhook_id)!
      const delivery = this.deliveries.get(result.delivery_id)!
      const isOwn = this.leases.get(webhook.id)?.owner === process.id && delivery.attempts === result.attempts
      if (!isOwn && this.#planted !== 'ownership is not checked') continue
      this.#witness.wrote(process, result, isOwn)
      const after = afterAttempt(delivery, { ...webhook, failed_before: this.#failedBefore(webhook.id) }, result, {
        now: new Date(this.#time.now),
        rng: this.#rng.next(),
      })
      if (this.#planted === 'waits are ignored' && after.delivery.status === 'pending')
        after.delivery.next_attempt_at = this.#iso(this.#time.now)
      this.#witness.changed(delivery, after, result)
      if (result.error !== null)
        this.#failures.push({ webhook_id: webhook.id, at: result.at.getTime(), counts: !delivery.is_redelivery })
      this.#keep(Object.assign(delivery, after.delivery))
      Object.assign(webhook, after.webhook)
      this.leases.get(webhook.id)!.is_troubled = isTrouble(result)
      if (after.disabled) this.disable(webhook, after.disabled === 'gone' ? 'gone' : 'webhook_disabled')
    }
  }

  #failedBefore(webhook_id: string): boolean {
    const { now } = this.#time
    return this.#failures.some(
      (one) =>
        one.webhook_id === webhook_id &&
        one.counts &&
        one.at >= now - failingMax_ms &&
        one.at <= now - failuresApart_ms,
    )
  }

  #nextDue({ webhook_id, except }: RestingLease, leave: boolean): number | null {
    const next = this.#pending(webhook_id, leave ? [] : except)[0]?.next_attempt_at
    return next ? Date.parse(next) : null
  }

  #rest(
    owner: string,
    { webhook_id, except }: RestingLease,
    { leave, due_at }: { leave: boolean; due_at: number | null },
    commits: (() => void)[],
  ): Rest | undefined {
    const lease = this.leases.get(webhook_id)
    if (lease?.owner !== owner) return undefined
    const isDue = due_at !== null && due_at <= this.#time.now
    const isGivenBack = leave || !(isDue || except.length > 0)
    commits.push(() => {
      lease.due_at = leave && due_at !== null ? Math.max(due_at, this.#time.now) : due_at
      if (isGivenBack) lease.owner = null
      const next = this.#nextDue({ webhook_id, except }, leave) ?? Infinity
      this.#witness.must(
        Math.max(next, this.#time.now) >= (lease.due_at ?? Infinity),
        `a resting lease is due with its next delivery: ${webhook_id} at ${lease.due_at}, not ${next}`,
      )
    })
    return isGivenBack ? 'given_back' : isDue ? 'due' : 'waiting'
  }

  #freeDead(owner: string, commits: (() => void)[]): void {
    for (const lease of this.leases.values())
      if (lease.owner !== null && lease.owner !== owner && !this.workers.has(lease.owner))
        commits.push(() =>
          Object.assign(lease, { owner: null, due_at: Math.min(lease.due_at ?? Infinity, this.#time.now) }),
        )
  }

  #giveUp(webhook_id: string, failure: 'webhook_disabled' | 'gone'): void {
    const finished = {
      status: 'failed',
      failure,
      next_attempt_at: null,
      finished_at: this.#iso(this.#time.now),
    } as const
    for (const delivery of this.#pending(webhook_id, [])) this.#keep(Object.assign(delivery, finished))
  }

  #iso(ms: number): string {
    return new Date(ms).toISOString()
  }
}
