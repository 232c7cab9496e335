import timersPromises from 'node:timers/promises'
import type { AttemptedWebhook } from '../../src/events/webhooks/delivery/after-attempt.ts'
import { Delivery } from '../../src/events/webhooks/delivery/deliver.ts'
import type { AttemptResult, DueDelivery } from '../../src/events/webhooks/delivery/delivery-store.ts'
import { makeRng, type Rng } from '../rng.ts'
import { SimulatedDeliveryStore, type PlantedDeliveryFault } from './delivery-store.ts'
import { DeliveryWitness } from './delivery-witness.ts'
import { makeFaults, type Faults } from './faults.ts'
import type { WorldReport } from './task-world.ts'
import { Transactions } from './transactions.ts'
import { VirtualTime } from './virtual-time.ts'
import type { DeliveringProcess } from './stored.ts'

const minute_ms = 60_000
const hour_ms = 60 * minute_ms
const processesCount = 3
/** One webhook is never well before the end. */
const dead = 'wh_0'
const webhooksCount = 3
/** First minutes with many concurrent actions, then days in which retries end. */
const dense = { length_ms: minute_ms, pollInterval_ms: 500, pace_ms: 8000 }
const days = { length_ms: 135 * hour_ms, pollInterval_ms: hour_ms, pace_ms: 14 * hour_ms }
/** Time from the last fault until all deliveries have ended: the longest wait, and some checks. */
const drain_ms = 32 * hour_ms

/** How long PostgreSQL takes to notice that a process has died, and other processes to consider a silent one dead. */
const noticed_ms = 1000
const lease_ms = 10_000
const beat_ms = 1000
const stop_ms = 5000
const timeout_ms = 15_000

/** Current behavior of a receiver. */
const moods = ['well', 'well', 'failing', 'mixed', 'overloaded', 'hanging'] as const
type Mood = (typeof moods)[number]

/** A delivering process, and the time of its last sign of life. */
interface Deliverer extends DeliveringProcess {
  delivery: Delivery
  /** Matches new events with webhooks. */
  match(): Promise<void>
  seen_at: number
  died_at: number
}

/**
 * Webhooks, receivers that are well, slow, hostile or gone, and processes that deliver, freeze and die on a store that
 * fails. What is done is done by `deliver.ts` and `after-attempt.ts`.
 */
export async function runDeliveryWorld(seed: number, planted?: PlantedDeliveryFault): Promise<WorldReport> {
  const time = new VirtualTime(new Date('2026-11-20T10:00Z'))
  const uninstall = time.install()
  try {
    return await new DeliveryWorld(time, makeRng(seed), planted).run()
  } finally {
    uninstall()
  }
}

class DeliveryWorld {
  readonly #time: VirtualTime
  readonly #rng: Rng
  readonly #faults: Faults
  readonly #witness: DeliveryWitness
  readonly #store: SimulatedDeliveryStore
  readonly #transactions: Transactions
  readonly #moods = new Map<string, Mood>()
  /** Processes that not every other process has forgotten yet. */
  readonly #processes = new Set<Deliverer>()
  #age: typeof dense = dense
  #started = 0
  #happened = 0
  #hasEnded = false

  constructor(time: VirtualTime, rng: Rng, planted: PlantedDeliveryFault | undefined) {
    this.#time = time
    this.#rng = rng
    this.#faults = makeFaults(rng.fork())
    this.#witness = new DeliveryWitness(time)
    this.#transactions = new Transactions({ time, rng: rng.fork(), faults: this.#faults })
    this.#store = new SimulatedDeliveryStore({
      time,
      rng: rng.fork(),
      witness: this.#witness,
      transactions: this.#transactions,
      planted,
    })
    for (let i = 0; i < webhooksCount; i++) {
      const id = `wh_${i}`
      this.#store.webhooks.set(id, aWebhook(id))
      this.#moods.set(id, rng.pick(moods))
    }
    this.#moods.set(dead, 'failing')
  }

  async run(): Promise<WorldReport> {
    const time = this.#time
    const isBroken = (): boolean => this.#witness.broken !== undefined
    for (let i = 0; i < processesCount; i++) this.#start()
    time.after(0, this.#people)
    time.after(noticed_ms, this.#reap)
    await time.run(time.now + dense.length_ms, isBroken)
    this.#renew(days)
    await time.run(time.now + days.length_ms, isBroken)
    this.#faults.stop()
    this.#hasEnded = true
    for (const id of this.#moods.keys()) this.#moods.set(id, 'well')
    this.#renew(days)
    const healed_at = time.now
    await time.run(healed_at + drain_ms, () => isBroken() || this.#isOver())
    const drained_ms = time.now - healed_at
    if (!isBroken()) this.#check()
    const ended = [...this.#store.deliveries.values()].map(({ status, failure }) => failure ?? status)
    const { broken, trace, counts } = this.#witness
    return { broken, trace, counts, ended: ended.join(' '), drained_ms }
  }

  #isOver(): boolean {
    const { events, deliveries, leases } = this.#store
    return (
      [...events.values()].every(({ isMatched }) => isMatched) &&
      [...deliveries.values()].every(({ status }) => status !== 'pending') &&
      [...leases.values()].every(({ owner, due_at }) => owner === null && due_at === null)
    )
  }

  #check(): void {
    const { events, deliveries, leases } = this.#store
    for (const [id, { isMatched }] of events) this.#witness.must(isMatched, `everything drains: ${id} is not matched`)
    for (const { id, status, next_attempt_at, webhook_id } of deliveries.values())
      this.#witness.must(
        status !== 'pending',
        `everything drains: ${id} is pending until ${next_attempt_at}, its lease is ${JSON.stringify(leases.get(webhook_id))}`,
      )
    for (const [id, { owner, due_at }] of leases)
      this.#witness.must(
        owner === null && due_at === null,
        `everything drains: lease ${id} of ${owner} is due ${due_at}`,
      )
    this.#witness.checkRequests()
  }

  /** Other processes take over, and check as often as the age requires. */
  #renew(age: typeof dense): void {
    this.#age = age
    for (const process of this.#processes) if (!process.isDead) this.#kill(process)
    for (let i = 0; i < processesCount; i++) this.#start()
  }

  #start(): void {
    const store = this.#store
    const time = this.#time
    const id = `worker_${(this.#started += 1)}`
    const { pollInterval_ms } = this.#age
    const process: Deliverer = {
      id,
      isDead: false,
      frozen_until: 0,
      seen_at: time.now,
      died_at: 0,
      delivery: undefined as never,
      match: async () => undefined,
    }
    process.delivery = new Delivery({
      store: store.connect(process),
      send: (delivery, { at, signal }) => this.#send(process, delivery, at, signal),
      log: { warn: () => undefined },
      pollInterval_ms,
    })
    this.#processes.add(process)
    store.workers.add(id)
    this.#witness.note(`${id} starts`)
    time.every(
      beat_ms > pollInterval_ms ? beat_ms : Math.max(beat_ms, pollInterval_ms / 2),
      () => {
        process.seen_at = time.now
        store.workers.add(id)
        this.#harm(process)
        return false
      },
      process,
    )
    process.match = async () => {
      if (await store.match(process).catch(() => false)) process.delivery.look()
    }
    const match = (): void =>
      void process.match().then(() => time.after(pollInterval_ms, () => time.scope.run({ process }, match), process))
    time.scope.run({ process }, () => {
      process.delivery.start()
      match()
    })
  }

  #harm(process: Deliverer): void {
    const { time, rng, faults } = { time: this.#time, rng: this.#rng, faults: this.#faults }
    if (faults.hits('process is killed')) this.#replace(process)
    else if (faults.hits('process freezes')) process.frozen_until = time.now + rng.between(500, 30_000)
    else if (faults.hits('process stops'))
      time.scope.run({ process }, () => void process.delivery.stop(stop_ms).then(() => this.#replace(process)))
  }

  #replace(process: Deliverer): void {
    if (process.isDead) return
    this.#kill(process)
    this.#time.after(this.#rng.between(100, 20_000), () => this.#start())
  }

  #kill(process: Deliverer): void {
    process.isDead = true
    process.died_at = this.#time.now
    this.#witness.note(`${process.id} is gone`)
    this.#witness.excuses(process, { isDead: true })
  }

  /** Processes that are dead, or silent for too long, are forgotten. */
  readonly #reap = (): false => {
    const { now } = this.#time
    for (const process of this.#processes) {
      const isGone = process.isDead && now - process.died_at >= noticed_ms
      const isSilent = now < process.frozen_until && now - process.seen_at > lease_ms
      if (isGone) this.#processes.delete(process)
      if ((!isGone && !isSilent) || !this.#store.workers.delete(process.id)) continue
      this.#witness.note(`${process.id} is taken for dead`)
      this.#witness.excuses(process, { isDead: process.isDead })
    }
    this.#time.after(this.#age === dense ? noticed_ms : 10 * minute_ms, this.#reap)
    return false
  }

  async #send(process: Deliverer, delivery: DueDelivery, at: Date, signal: AbortSignal): Promise<AttemptResult> {
    const time = this.#time
    const isOwner = this.#store.leases.get(delivery.webhook_id)?.owner === process.id
    const request = this.#witness.begins(process, delivery, isOwner)
    const started = time.now
    const { took_ms, status, retry_after_ms } = this.#answer(delivery.webhook_id)
    // The receiver handles the request whether or not the sender is still alive.
    if (status === 200) time.after(Math.floor(took_ms / 2), () => (this.#witness.accepts(delivery), false))
    try {
      await timersPromises.setTimeout(took_ms, undefined, { signal })
    } catch (error) {
      request.isExcused = true
      throw error
    } finally {
      this.#witness.ends(request)
    }
    return {
      delivery_id: delivery.id,
      webhook_id: delivery.webhook_id,
      attempts: delivery.attempts,
      at,
      duration_ms: time.now - started,
      request_url: delivery.url,
      request_headers: {},
      status,
      response_headers: null,
      body: null,
      error: status === 200 ? null : 'The receiver did not take it.',
      retry_after_ms,
    }
  }

  #answer(webhook_id: string): { took_ms: number; status: number | null; retry_after_ms: number | undefined } {
    const rng = this.#rng
    const mood = this.#moods.get(webhook_id)!
    const took_ms = rng.happens(0.1) ? rng.between(1000, 14_000) : rng.between(2, 300)
    const answer = (status: number, retry_after_ms?: number) => ({ took_ms, status, retry_after_ms })
    if (this.#faults.hits('receiver is gone') && rng.happens(0.03)) return answer(410)
    if (mood === 'hanging' && rng.happens(0.8)) return { took_ms: timeout_ms, status: null, retry_after_ms: undefined }
    if (mood === 'overloaded' && rng.happens(0.6))
      return answer(rng.pick([429, 502, 503, 504]), rng.happens(0.5) ? rng.between(1000, 30 * hour_ms) : undefined)
    if (mood === 'failing' || (mood === 'mixed' && rng.happens(0.5))) return answer(rng.pick([500, 404, 301]))
    return answer(200)
  }

  /** A process writes an event and matches it at once unless it is frozen or dead. */
  readonly #happens = (): boolean => {
    const number = (this.#happened += 1)
    // The webhook that is down for days gets fewer events, because each costs ten attempts.
    this.#store.events.set(`evt_${number}`, { isMatched: false, isFor: (id) => id !== dead || number % 5 === 1 })
    const living = [...this.#processes].filter(({ isDead }) => !isDead)
    if (living.length === 0) return false
    const process = this.#rng.pick(living)
    if (process.frozen_until > this.#time.now) return false
    this.#time.scope.run({ process }, () => void process.match())
    return true
  }

  /** They bring events about, change receivers, ask for deliveries again, and switch webhooks off and on. */
  readonly #people = (): false => {
    if (this.#hasEnded) return false
    const { rng, store, time } = { rng: this.#rng, store: this.#store, time: this.#time }
    // Often something follows at once, while requests are in flight and leases are released.
    for (let after_ms = 0; after_ms < 500; after_ms += rng.between(5, 700)) time.after(after_ms, this.#happens)
    const webhook = rng.pick([...store.webhooks.values()])
    if (webhook.id !== dead && rng.happens(0.3)) this.#moods.set(webhook.id, rng.pick(moods))
    if (webhook.status === 'disabled') Object.assign(webhook, { ...aWebhook(webhook.id) })
    else if (webhook.id !== dead && rng.happens(0.02)) store.disable(webhook, 'webhook_disabled')
    const over = [...store.deliveries.values()].filter(
      ({ status, webhook_id }) => status === 'failed' && store.webhooks.get(webhook_id)!.status === 'active',
    )
    if (over.length > 0 && rng.happens(0.3)) store.redeliver(rng.pick(over))
    if (rng.happens(0.05)) this.#transactions.away_until = time.now + rng.between(500, 8000)
    time.after(rng.between(1, this.#age.pace_ms), this.#people)
    return false
  }
}

function aWebhook(id: string): AttemptedWebhook {
  return {
    id,
    org_id: 'org',
    url: `https://hooks.example.com/${id}`,
    status: 'active',
    created_by: 'user_1',
    failing_since: null,
    slowed_until: null,
    failed_before: false,
  }
}
