import { isTransient } from './postgres/database.ts'

/** An operation that waits for its group. */
interface Waiting<Op, Result> {
  op: Op
  /** On the clock of `performance.now()`. */
  deadline: number
  resolve: (result: Result) => void
  reject: (error: unknown) => void
}

export interface GroupOptions {
  /** Groups that run at a time. */
  concurrency: number
  /** Maximum number of operations in a group. */
  groupMax: number
  /**
   * A second group starts only when the running one has taken this long. Operations that arrive earlier form one larger
   * group, which costs less than two. Defaults to 0.
   */
  apart_ms?: number
  /** How long an operation waits for its group to start; no limit by default. */
  waitMax_ms?: number
  /** Called when no work is running and no caller waits. */
  onIdle?: () => void
}

/**
 * Runs `work` on all operations; if that fails, on each one alone, so that one invalid operation does not fail the others.
 * If the connection or the database failed, it is unknown what was stored, so there is no retry.
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

/** Runs `work` once for the operations of each name, and returns its results in the order of `ops`. */
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
 * Batcher: runs many small operations in few statements without added delay. While a group runs, further operations
 * collect, and the next group takes them all. Under load dozens share a round trip and a commit; a single operation
 * starts at once. A group starts after its operations were submitted, so what it reads is never older than a call.
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
  /** When the last group started, on the clock of `performance.now()`. */
  #began_at = 0
  #beside: NodeJS.Timeout | undefined

  /**
   * `work` runs a group and returns a result or an error for each operation, in their order; if it throws, all fail. An
   * operation whose group does not start in time fails with a timeout.
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

  /** Starts a group of the waiting operations, now or once it may run beside the current one. */
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
    // Operations that are submitted in the same turn of the event loop form one group.
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
      // Another group is running; its loop takes the waiting operations.
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
        this.#waiting.shift()!.reject(new Error(`timeout: the operation did not start within ${this.#waitMax_ms} ms`))
      if (this.#waiting.length > 0) this.#watch()
    }, Math.ceil(wait_ms))
    this.#timer.unref()
  }
}
