import type { AfterAttempt } from '../../src/events/webhooks/delivery/after-attempt.ts'
import type { AttemptResult, DueDelivery } from '../../src/events/webhooks/delivery/delivery-store.ts'
import type { VirtualTime } from './virtual-time.ts'
import { Witness } from './witness.ts'
import type { DeliveringProcess, StoredDelivery } from './stored.ts'

const minute_ms = 60_000
const hour_ms = 60 * minute_ms
/** The waits of decision D97 before the second attempt and each later one. */
const promised_ms = [5000, 5 * minute_ms, 30 * minute_ms, ...[2, 5, 10, 14, 20, 24].map((hours) => hours * hour_ms)]
const requestsMax = 4

/** A request as seen by the receiver. */
interface SeenRequest {
  delivery: DueDelivery
  process: DeliveringProcess
  /** Its process was dead, or taken for dead, before it was over: it may be made again, and its result may be lost. */
  isExcused: boolean
  isOver: boolean
  isWritten: boolean
}

/**
 * Watches the simulated delivery and says what must never be, by the promises rather than by the code that is watched.
 */
export class DeliveryWitness extends Witness {
  readonly #time: VirtualTime
  readonly #requests: SeenRequest[] = []
  readonly #open = new Set<SeenRequest>()
  readonly #accepted = new Set<string>()
  readonly #notBefore = new Map<string, number>()

  constructor(time: VirtualTime) {
    super(time)
    this.#time = time
  }

  /** A process begins a request, as the owner of the lease or as one that does not know yet that it lost it. */
  begins(process: DeliveringProcess, delivery: DueDelivery, isOwner: boolean): SeenRequest {
    const request = { delivery, process, isExcused: !isOwner, isOver: false, isWritten: false }
    this.#requests.push(request)
    this.#open.add(request)
    this.counts.tries += 1
    const notBefore = this.#notBefore.get(delivery.id) ?? 0
    // A process that lost the lease may be late, with a delivery that was due when it read.
    this.must(
      !isOwner || this.#time.now >= notBefore,
      `an attempt waits for its time: ${delivery.id} came ${notBefore - this.#time.now} ms too early`,
    )
    const open = [...this.#open].filter(({ delivery: { webhook_id } }) => webhook_id === delivery.webhook_id)
    this.must(
      open.filter((one) => one.process === process).length <= requestsMax,
      `a process sends at most ${requestsMax} requests to a webhook at a time: ${delivery.webhook_id}`,
    )
    const owned = open.filter(({ isExcused }) => !isExcused)
    this.must(
      new Set(owned.map((one) => one.process)).size <= 1,
      `a webhook is sent to by one process: ${delivery.webhook_id} by ${owned.map((one) => one.process.id).join()}`,
    )
    this.must(
      open.filter((one) => one.process === process && one.delivery.id === delivery.id).length === 1,
      `a delivery is sent once at a time: ${delivery.id}`,
    )
    return request
  }

  /** Records that the receiver accepted a request, whether or not the sender gets the response. */
  accepts({ id }: DueDelivery): void {
    this.#accepted.add(id)
  }

  ends(request: SeenRequest): void {
    request.isOver = true
    this.#open.delete(request)
  }

  /** Records that a process died or was considered dead: another one may send its current deliveries. */
  excuses(process: DeliveringProcess, { isDead }: { isDead: boolean }): void {
    for (const request of this.#requests)
      if (request.process === process && !request.isWritten) {
        request.isExcused = true
        if (isDead) this.ends(request)
      }
  }

  redelivered(delivery_id: string): void {
    this.#notBefore.delete(delivery_id)
  }

  /** Records a result that is stored. */
  wrote(process: DeliveringProcess, result: AttemptResult, isOwn: boolean): void {
    this.must(isOwn, `only the owner of a lease writes, once: ${process.id} wrote of ${result.delivery_id}`)
    const request = this.#requests.findLast((one) => one.process === process && one.delivery.id === result.delivery_id)
    if (request) request.isWritten = true
    this.counts.writes += 1
  }

  /** Records the committed change of an attempt; `before` is the delivery before it. */
  changed(before: StoredDelivery, { delivery }: AfterAttempt, result: AttemptResult): void {
    this.note(
      `${before.id} attempt ${delivery.attempts}: ${result.status ?? result.error} → ${delivery.status} ${delivery.failure ?? ''}`,
    )
    this.must(delivery.attempts === before.attempts + 1, `attempts are counted: ${before.id}`)
    if (delivery.status === 'delivered') {
      this.must(this.#accepted.has(before.id), `what is delivered was taken: ${before.id}`)
      return
    }
    this.counts.refusals += 1
    if (delivery.failure === 'attempts_exhausted')
      this.must(
        before.failure !== null || delivery.round_attempts === promised_ms.length + 1,
        `a delivery is given up after ten attempts: ${before.id} after ${delivery.round_attempts}`,
      )
    if (delivery.status !== 'pending') return
    this.counts.waits += 1
    const promised = promised_ms[delivery.round_attempts - 1] ?? Number.NaN
    const asked = Math.min(result.retry_after_ms ?? 0, 24 * hour_ms)
    const wait_ms = Date.parse(delivery.next_attempt_at!) - this.#time.now
    const [min, max] = [Math.max(promised * 0.8, asked), Math.max(promised * 1.2, asked)]
    this.must(
      wait_ms >= min - 1 && wait_ms <= max + 1,
      `attempts follow the schedule: ${before.id} waits ${wait_ms} ms after attempt ${delivery.round_attempts}`,
    )
    this.#notBefore.set(before.id, this.#time.now + min - 1)
  }

  /** Checks at the end that every begun request has a result. */
  checkRequests(): void {
    for (const { delivery, process, isWritten, isExcused } of this.#requests) {
      if (isExcused && !isWritten) this.counts.lost += 1
      this.must(
        isWritten || isExcused,
        `what a request came to is written, unless its process died: ${delivery.id} by ${process.id}`,
      )
    }
  }
}
