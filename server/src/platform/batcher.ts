import { isTransient } from './postgres/database.ts'

/** One that waits for its group. */
interface Waiting<Op, Result> {
  op: Op
  /** Until when, of `performance.now()`. */
  deadline: number
  resolve: (result: Result) => void
  reject: (error: unknown) => void
}

export interface GroupOptions {
  /** Groups that are done at a time. */
  concurrency: number
  /** How many a group has at most. */
  groupMax: number
  /**
   * A further group begins beside one that runs only when that one has taken so long: what comes before is gathered into one larger
   * group, which costs less than two. 0 where nothing is said.
   */
  apart_ms?: number
  /** How long one waits for its group to begin; for ever where nothing is said. */
  waitMax_ms?: number
  /** Called when no work is running and no caller waits. */
  onIdle?: () => void
}

/**
 * Runs `work` on all items; where that fails, on each alone, so that one bad item does not fail the others. Not where
 * the connection or the database failed: then what was stored is unknown, and a retry is not safe.
 */
export async function batchOrEach<Op, Result>(
  ops: readonly Op[],
  work: (ops: readonly Op[]) => Promise<readonly (Result | Error)[]>,
): Promise<readonly (Result | Error)[]> {
  try {
    return await work(ops)
  } catch (error) {
    if (ops.length === 1 || isTransient(error)) throw error
    const results: (Result | Error)[] = []
    for (const op of ops) results.push(...(await work([op]).catch((alone: Error) => [alone])))
    return results
  }
}

/** Does what has the same name once: `work` gets one of each name, and its result goes to all that have the name. In their order. */
export async function onceEach<Op, Result>(
  ops: readonly Op[],
  nameOf: (op: Op) => string,
  work: (ops: readonly Op[]) => Promise<readonly Result[]>,
): Promise<Result[]> {
  const each = new Map(ops.map((op) => [nameOf(op), op]))
  const results = await work([...each.values()])
  const byName = new Map([...each.keys()].map((name, i) => [name, results[i] as Result]))
  return ops.map((op) => byName.get(nameOf(op)) as Result)
}

/**
 * Does many small things in few statements without making any of them wait: while one group is being done, those
 * that come gather, and the next group takes them all. Under load a round trip and a commit are shared by dozens; alone,
 * a thing is begun at once. None is begun before it was asked for, so what a group reads is never older than the asking.
 */
export class Batcher<Op, Result> {
  readonly #work: (ops: readonly Op[]) => Promise<readonly (Result | Error)[]>
  readonly #groupMax: number
  readonly #waitMax_ms: number
  readonly #apart_ms: number
  readonly #onIdle: (() => void) | undefined
  readonly #waiting: Waiting<Op, Result>[] = []
  readonly #concurrencyMax: number
  #concurrency: number
  #timer: NodeJS.Timeout | undefined
  /** When the last group began, by the clock of `performance`. */
  #began_at = 0
  #beside: NodeJS.Timeout | undefined

  /**
   * `work` does a group and gives a result or an error for each of its ops, in their order; when it throws, all of
   * them fail. One whose group does not begin in time fails by a timeout.
   */
  constructor(
    work: (ops: readonly Op[]) => Promise<readonly (Result | Error)[]>,
    { concurrency, groupMax, waitMax_ms = Infinity, apart_ms = 0, onIdle }: GroupOptions,
  ) {
    this.#work = work
    this.#concurrencyMax = concurrency
    this.#concurrency = concurrency
    this.#onIdle = onIdle
    this.#groupMax = groupMax
    this.#waitMax_ms = waitMax_ms
    this.#apart_ms = apart_ms
  }

  submit(op: Op): Promise<Result> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ op, deadline: performance.now() + this.#waitMax_ms, resolve, reject })
      this.#begin()
    })
  }

  /** Begins a group of those that wait, now or once it may begin beside the one that runs. */
  #begin(): void {
    if (this.#concurrency === 0) return this.#watch()
    const isLone = this.#concurrency === this.#concurrencyMax
    const left_ms = isLone ? 0 : this.#began_at + this.#apart_ms - performance.now()
    if (left_ms <= 0) return void this.#drain()
    this.#watch()
    if (this.#beside) return
    this.#beside = setTimeout(() => {
      this.#beside = undefined
      if (this.#waiting.length > 0) this.#begin()
    }, left_ms)
  }

  async #drain(): Promise<void> {
    this.#concurrency -= 1
    this.#began_at = performance.now()
    // Those that were submitted in the same turn of the event loop belong together.
    await Promise.resolve()
    while (this.#waiting.length > 0) {
      this.#began_at = performance.now()
      const group = this.#waiting.splice(0, this.#groupMax)
      try {
        const results = await this.#work(group.map(({ op }) => op))
        group.forEach(({ resolve, reject }, i) => {
          const result = results[i]
          if (result instanceof Error) reject(result)
          else resolve(result as Result)
        })
      } catch (error) {
        for (const { reject } of group) reject(error)
      }
      // The other one goes on, and takes what waits.
      if (this.#apart_ms > 0 && this.#concurrency < this.#concurrencyMax - 1) break
    }
    this.#concurrency += 1
    if (this.#waiting.length > 0) this.#begin()
    if (this.#concurrency === this.#concurrencyMax) this.#onIdle?.()
  }

  /** The first caller times out first, so one timer serves all. */
  #watch(): void {
    if (this.#timer || this.#waitMax_ms === Infinity) return
    const wait_ms = Math.max(0, this.#waiting[0]!.deadline - performance.now())
    this.#timer = setTimeout(() => {
      this.#timer = undefined
      const now = performance.now()
      while (this.#waiting[0] && this.#waiting[0].deadline <= now)
        this.#waiting.shift()!.reject(new Error(`timeout: no turn came within ${this.#waitMax_ms} ms`))
      if (this.#waiting.length > 0) this.#watch()
    }, Math.ceil(wait_ms))
    this.#timer.unref()
  }
}
