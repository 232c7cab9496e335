import type { Logger } from 'pino'
import type { AttemptResult, DeliveryStore, DueDelivery } from './delivery-store.ts'
import { leaseBounds, EndpointLeases, type LeaseBounds } from './endpoint-leases.ts'

/** Poll interval for due deliveries without a signal. */
const pollInterval_ms = 500
/** Delay after a failed round, for example without a database. */
const retry_ms = 1000
/** Interval at which leases of dead processes are released. */
const dead_ms = 1000
/** Maximum number of results and leases of one transaction. */
const batch = 200
/** How long to wait for aborted requests, which end at once. */
const abort_ms = 1000

export interface DeliveryOptions {
  store: DeliveryStore
  /** Makes one attempt; throws if it was aborted and its outcome is unknown. */
  send: (delivery: DueDelivery, options: { at: Date; signal: AbortSignal }) => Promise<AttemptResult>
  log: Pick<Logger, 'warn'>
  bounds?: LeaseBounds
  /** Poll interval; longer in tests, where days pass at once. */
  pollInterval_ms?: number
}

/**
 * Delivers what is due for the endpoint leases that this process owns (decisions D97, 0012). One loop makes all
 * database calls, in rounds: it writes the results of requests, takes leases, finds their due deliveries, starts the
 * requests, and returns leases without due deliveries. A delivery counts as in flight until its result is written, so
 * the limits of a webhook and of the process are never exceeded, and memory is bounded.
 *
 * A crash at any point leaves deliveries pending and the lease with a dead owner: the process that takes it sends them
 * again.
 */
export class Delivery {
  readonly #store: DeliveryStore
  readonly #send: DeliveryOptions['send']
  readonly #log: DeliveryOptions['log']
  readonly #leases: EndpointLeases
  readonly #pollInterval_ms: number
  readonly #broken = new AbortController()
  #results: AttemptResult[] = []
  #running: Promise<void> | undefined
  #isStopping = false
  /** Ends the current pause, if there is one. */
  #wake: (() => void) | undefined
  #isWoken = false
  #looks_at = -Infinity
  #frees_at = -Infinity

  constructor({
    store,
    send,
    log,
    bounds = leaseBounds,
    pollInterval_ms: every_ms = pollInterval_ms,
  }: DeliveryOptions) {
    this.#store = store
    this.#send = send
    this.#log = log
    this.#leases = new EndpointLeases(bounds)
    this.#pollInterval_ms = every_ms
  }

  start(): void {
    this.#running ??= this.#run()
  }

  /** Something became due: looks for it at once. */
  look(): void {
    this.#looks_at = -Infinity
    this.#stir()
  }

  /**
   * Starts nothing more, waits at most `wait_ms` for requests in flight, aborts the others, and returns the leases.
   * Unfinished deliveries stay due.
   */
  async stop(wait_ms: number): Promise<void> {
    this.#isStopping = true
    this.#stir()
    await this.#running
    try {
      await this.#drain(wait_ms)
      this.#broken.abort(new Error('the service stops'))
      await this.#drain(abort_ms)
      await this.#rest(this.#leases.all(), { leave: true })
    } catch (error) {
      this.#log.warn({ err: error }, 'endpoint leases could not be returned; other processes take them over')
    } finally {
      this.#broken.abort()
    }
  }

  async #drain(wait_ms: number): Promise<void> {
    const end = performance.now() + wait_ms
    for (;;) {
      this.#isWoken = false
      await this.#write()
      const left_ms = end - performance.now()
      if (this.#leases.requests === 0 || left_ms <= 0) return
      await this.#pause(left_ms)
    }
  }

  async #run(): Promise<void> {
    while (!this.#isStopping) {
      this.#isWoken = false
      try {
        if (!(await this.#round())) await this.#pause(this.#pollInterval_ms)
      } catch (error) {
        if (this.#isStopping) return
        this.#log.warn({ err: error }, 'webhooks could not be delivered; retrying')
        const again = performance.now() + retry_ms
        for (let left = retry_ms; left > 0 && !this.#isStopping; left = again - performance.now()) {
          this.#isWoken = false
          await this.#pause(left)
        }
      }
    }
  }

  /** Returns whether there is more to do at once. */
  async #round(): Promise<boolean> {
    await this.#write()
    const more = await this.#take()
    return (await this.#begin()) || more
  }

  /** Writes results. A result that is written twice, because the first write was in doubt, changes nothing. */
  async #write(): Promise<void> {
    while (this.#results.length > 0) {
      const results = this.#results.slice(0, batch)
      await this.#store.write(results)
      this.#results = this.#results.slice(results.length)
      for (const { webhook_id, delivery_id } of results) this.#leases.end(webhook_id, delivery_id)
    }
  }

  /** Takes leases as far as there is room, and wakes its own. Returns whether there may be more. */
  async #take(): Promise<boolean> {
    const now_ms = performance.now()
    if (now_ms < this.#looks_at) return false
    if (now_ms >= this.#frees_at) {
      this.#frees_at = now_ms + dead_ms
      await this.#store.freeDead()
    }
    this.#looks_at = now_ms + this.#pollInterval_ms
    const waiting = this.#leases.waiting()
    if (waiting.length > 0) this.#leases.wake(await this.#store.listWoken(waiting))
    const { healthy, troubled } = this.#leases.room(now_ms)
    if (healthy + troubled === 0) return false
    const room = { healthy: Math.min(healthy, batch), troubled: Math.min(troubled, batch) }
    const taken = await this.#store.take(room)
    this.#leases.add(taken)
    if (taken.length < Math.min(room.healthy, room.troubled)) return false
    this.#looks_at = -Infinity
    return true
  }

  /**
   * Finds due deliveries, starts to send them, and returns leases without further ones. Returns whether more is due.
   */
  async #begin(): Promise<boolean> {
    const wanted = this.#leases.wanted(performance.now())
    const idle: string[] = []
    if (wanted.length > 0) {
      const found = new Map((await this.#store.find(wanted)).map((lease) => [lease.webhook_id, lease]))
      for (const { webhook_id, count } of wanted) {
        const lease = found.get(webhook_id)
        if (!lease) {
          this.#leases.remove(webhook_id)
          continue
        }
        this.#leases.setSlowed(webhook_id, lease.is_slowed)
        for (const delivery of lease.due) this.#sendOne(delivery, lease.now)
        if (lease.due.length < count) idle.push(webhook_id)
      }
    }
    await this.#rest(this.#leases.surplus(performance.now()), { leave: true })
    return this.#rest(idle, { leave: false })
  }

  #sendOne(delivery: DueDelivery, at: Date): void {
    const { id, webhook_id } = delivery
    this.#leases.begin(webhook_id, id, performance.now())
    void this.#send(delivery, { at, signal: this.#broken.signal })
      .then(
        (result) => {
          this.#leases.learn(result)
          this.#results.push(result)
        },
        (error: unknown) => {
          // It stays pending and due, as if this process had died here.
          if (!this.#isStopping)
            this.#log.warn({ err: error, delivery_id: id }, 'a delivery attempt was aborted; it will be repeated')
          this.#leases.end(webhook_id, id)
        },
      )
      .then(() => this.#stir())
  }

  /** Returns whether something is already due in one of them. */
  async #rest(webhook_ids: readonly string[], options: { leave: boolean }): Promise<boolean> {
    let isDue = false
    for (let from = 0; from < webhook_ids.length; from += batch) {
      const leases = this.#leases.resting(webhook_ids.slice(from, from + batch))
      const rests = await this.#store.rest(leases, options)
      for (const { webhook_id } of leases) {
        const rest = rests.get(webhook_id) ?? 'lost'
        if (rest === 'due') isDue = true
        else if (rest === 'waiting') this.#leases.wait(webhook_id)
        else this.#leases.remove(webhook_id)
      }
    }
    return isDue
  }

  #stir(): void {
    this.#isWoken = true
    this.#wake?.()
  }

  /** Waits for this time, or until there is something to do. */
  #pause(wait_ms: number): Promise<void> {
    if (this.#isWoken) return Promise.resolve()
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, wait_ms)
      this.#wake = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }
}
