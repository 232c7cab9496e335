import { AsyncLocalStorage } from 'node:async_hooks'
import { syncBuiltinESMExports } from 'node:module'
import timersPromises from 'node:timers/promises'

/** A process of the simulated world: what it does happens only while it is alive and not frozen. */
export interface SimulatedProcess {
  isDead: boolean
  /** As a SIGSTOP does: nothing of it happens before this moment, and then all that has become due. */
  frozen_until: number
}

/** Whose code is running. */
export interface Scope {
  process: SimulatedProcess
  /** The attempt at a task that it belongs to. */
  attempt?: number
}

interface Entry {
  at: number
  order: number
  act: () => boolean | void
  process: SimulatedProcess | undefined
  isCanceled: boolean
}

/**
 * Time that passes from event to event. While it is installed, timers and clocks of code that runs in a scope are its
 * own: so the engine runs as it stands, in one thread, as fast as it can, and always in the same order.
 */
export class VirtualTime {
  /** ms since 1970. */
  now: number
  readonly scope = new AsyncLocalStorage<Scope>()
  /** Where false, sleeping code is woken at once: a planted fault. */
  waits = true
  readonly #begun: number
  readonly #entries: Entry[] = []
  #order = 0

  constructor(begin: Date) {
    this.now = begin.getTime()
    this.#begun = this.now
  }

  /** Acts after so many ms. A callback that returns false has started nothing further, and is cheaper. */
  after(ms: number, act: Entry['act'], process?: SimulatedProcess): Entry {
    const entry = { at: this.now + Math.max(0, ms), order: (this.#order += 1), act, process, isCanceled: false }
    push(this.#entries, entry)
    return entry
  }

  /** Acts again and again, for as long as its process lives. */
  every(ms: number, act: Entry['act'], process: SimulatedProcess): void {
    const again = (): boolean | void => {
      this.after(ms, again, process)
      return act()
    }
    this.after(ms, again, process)
  }

  /** Runs until a moment, or until `isOver`, which is asked after each event. */
  async run(until: number, isOver: () => boolean): Promise<void> {
    for (let entry = this.#next(until); entry; entry = this.#next(until)) {
      this.now = entry.at
      if (entry.act() !== false) await settled()
      if (isOver()) return
    }
  }

  #next(until: number): Entry | undefined {
    for (let entry = this.#entries[0]; entry && entry.at <= until; entry = this.#entries[0]) {
      pop(this.#entries)
      const { process, isCanceled } = entry
      if (isCanceled || process?.isDead) continue
      if (!process || process.frozen_until <= entry.at) return entry
      entry.at = process.frozen_until
      push(this.#entries, entry)
    }
    return undefined
  }

  /** Puts this time in the place of the real one, for code that runs in a scope; the returned function undoes it. */
  install(): () => void {
    const real = { setTimeout, clearTimeout, now: Date.now, delay: timersPromises.setTimeout }
    const timers = new WeakSet<object>()
    const begin = (act: () => void, ms = 0): object => {
      const scope = this.scope.getStore()
      if (!scope) return real.setTimeout(act, ms)
      const entry = this.after(ms, () => this.scope.run(scope, act), scope.process)
      const timer = { entry, ref: () => timer, unref: () => timer }
      timers.add(timer)
      return timer
    }
    const stop = (timer: unknown): void => {
      if (typeof timer === 'object' && timer && timers.has(timer)) (timer as { entry: Entry }).entry.isCanceled = true
      else real.clearTimeout(timer as NodeJS.Timeout)
    }
    const sleep = (ms = 0, value?: unknown, options: { signal?: AbortSignal } = {}): Promise<unknown> => {
      if (!this.scope.getStore()) return real.delay(ms, value, options)
      const { signal } = options
      return new Promise((resolve, reject) => {
        if (signal?.aborted) return reject(signal.reason as Error)
        const timer = begin(() => resolve(value), this.waits ? ms : 0)
        signal?.addEventListener('abort', () => (stop(timer), reject(signal.reason as Error)), { once: true })
      })
    }
    // The parts of these that the engine uses.
    Object.assign(globalThis, { setTimeout: begin, clearTimeout: stop })
    Object.assign(timersPromises, { setTimeout: sleep })
    syncBuiltinESMExports()
    Date.now = () => (this.scope.getStore() ? this.now : real.now())
    Object.defineProperty(performance, 'now', { value: () => this.now - this.#begun, configurable: true })
    return () => {
      Object.assign(globalThis, { setTimeout: real.setTimeout, clearTimeout: real.clearTimeout })
      Object.assign(timersPromises, { setTimeout: real.delay })
      syncBuiltinESMExports()
      Date.now = real.now
      Reflect.deleteProperty(performance, 'now')
    }
  }
}

/** Resolves when nothing is left to do at this moment. */
function settled(): Promise<void> {
  return new Promise((resolve) => void setImmediate(resolve))
}

function isBefore(a: Entry, b: Entry): boolean {
  return a.at < b.at || (a.at === b.at && a.order < b.order)
}

/** Into a binary heap. */
function push(heap: Entry[], entry: Entry): void {
  let at = heap.length
  heap.push(entry)
  for (let above = (at - 1) >> 1; at > 0 && isBefore(entry, heap[above]!); above = (at - 1) >> 1) {
    heap[at] = heap[above]!
    at = above
  }
  heap[at] = entry
}

/** Takes the first one out. */
function pop(heap: Entry[]): void {
  const last = heap.pop()
  if (!last || heap.length === 0) return
  let at = 0
  for (;;) {
    let below = 2 * at + 1
    if (below >= heap.length) break
    if (below + 1 < heap.length && isBefore(heap[below + 1]!, heap[below]!)) below += 1
    if (!isBefore(heap[below]!, last)) break
    heap[at] = heap[below]!
    at = below
  }
  heap[at] = last
}
