import { cadre as api } from '../api/client.ts'
import type { LogLine } from './types.ts'

/** What lines are asked for. */
export interface LogFilter {
  project: string
  agent: string
  level?: LogLine['level'] | undefined
  search?: string | undefined
  task_id?: string | undefined
  start_time?: string | undefined
}

/** Lines of one request. */
const page_lines = 1000
/** Pages that are kept: those looked at longest ago go first. */
const pagesMax = 40
/** Lines that are written at the same time may be seen in any order for this long. */
const overlap_ms = 3000
const poll_ms = 2000

/**
 * An agent's log of any length: lines up to an anchor are read by their distance from it, as they are looked at, and what
 * came after it is read again and again. So rows keep their places while lines come.
 */
export class LogStore {
  readonly filter: LogFilter
  /** Lines before the anchor. */
  history = 0
  /** Lines since the anchor, the oldest first. */
  live: LogLine[] = []
  isRead = false
  isTailing = true
  error: unknown
  version = 0
  #anchor: string | undefined
  readonly #pages = new Map<number, LogLine[]>()
  readonly #reading = new Set<number>()
  readonly #abort = new AbortController()
  readonly #listeners = new Set<() => void>()
  #timer: ReturnType<typeof setTimeout> | undefined

  constructor(filter: LogFilter) {
    this.filter = filter
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }
  readonly snapshot = (): number => this.version

  get count(): number {
    return this.history + this.live.length
  }

  async start(): Promise<void> {
    try {
      const newest = (await this.#read({ limit: 1 })).items[0]
      if (newest) {
        this.#anchor = new Date(Date.parse(newest.timestamp) - overlap_ms).toISOString()
        const page = await this.#read({ end_time: this.#anchor, limit: page_lines })
        this.history = page.total
        this.#pages.set(0, page.items)
      }
      await this.#readLive()
      this.isRead = true
    } catch (error) {
      this.#fail(error)
    }
    this.#tell()
    this.#pollSoon()
  }

  stop(): void {
    this.#abort.abort()
    clearTimeout(this.#timer)
  }

  /** The line in a row, the oldest being row 0; undefined where it is not read. */
  line(row: number): LogLine | undefined {
    if (row >= this.history) return this.live[row - this.history]
    const offset = this.history - 1 - row
    return this.#pages.get(Math.floor(offset / page_lines))?.[offset % page_lines]
  }

  /** Sees to it that rows are read. */
  need(from: number, to: number): void {
    const first = Math.floor(Math.max(0, this.history - 1 - to) / page_lines)
    const last = Math.floor((this.history - 1 - from) / page_lines)
    for (let page = first; page <= last && this.history > 0; page++) void this.#readPage(page)
  }

  /** The row of the first line at a moment or after it. */
  async rowAt(timestamp: string): Promise<number> {
    const { total } = await this.#read({ start_time: timestamp, limit: 1 })
    return Math.max(0, this.count - total)
  }

  /** The moment of the next error in a direction from a line; undefined where there is none. */
  async nextError(from: LogLine, direction: 'older' | 'newer'): Promise<string | undefined> {
    if (direction === 'older')
      return (await this.#read({ level: 'error', end_time: from.timestamp, limit: 1 })).items[0]?.timestamp
    const start_time = new Date(Date.parse(from.timestamp) + 1).toISOString()
    const { total } = await this.#read({ level: 'error', start_time, limit: 1 })
    if (total === 0) return undefined
    return (await this.#read({ level: 'error', start_time, limit: 1, offset: total - 1 })).items[0]?.timestamp
  }

  /** Every line that matches, the oldest first, a page at a time. */
  async *all(signal: AbortSignal): AsyncGenerator<LogLine[]> {
    for (let offset = this.history; offset > 0;) {
      const limit = Math.min(1000, offset)
      offset -= limit
      signal.throwIfAborted()
      yield (await this.#read({ end_time: this.#anchor, offset, limit })).items.toReversed()
    }
    yield this.live
  }

  #read(query: {
    end_time?: string | undefined
    start_time?: string
    level?: LogLine['level']
    limit: number
    offset?: number
  }) {
    const { project, agent, ...filter } = this.filter
    const given = Object.fromEntries(Object.entries({ ...filter, ...query }).filter(([, value]) => value !== undefined))
    return api.agents.logs(project, agent, given, { signal: this.#abort.signal }).page()
  }

  async #readPage(page: number): Promise<void> {
    const kept = this.#pages.get(page)
    if (kept) {
      // What is looked at is kept longest.
      this.#pages.delete(page)
      this.#pages.set(page, kept)
      return
    }
    if (this.#reading.has(page)) return
    this.#reading.add(page)
    try {
      const { items } = await this.#read({ end_time: this.#anchor, offset: page * page_lines, limit: page_lines })
      this.#pages.set(page, items)
      for (const oldest of this.#pages.keys()) {
        if (this.#pages.size <= pagesMax) break
        this.#pages.delete(oldest)
      }
      this.error = undefined
    } catch (error) {
      this.#fail(error)
    } finally {
      this.#reading.delete(page)
    }
    this.#tell()
  }

  /** Lines of the newest seconds take the place of what was known of them, because one may come late. */
  async #readLive(): Promise<void> {
    const last = this.live.at(-1)
    const since = last
      ? Math.max(Date.parse(last.timestamp) - overlap_ms, Date.parse(this.#anchor ?? last.timestamp))
      : undefined
    const start_time = since === undefined ? this.#anchor : new Date(since).toISOString()
    const lines: LogLine[] = []
    for (let isMore = true; isMore;) {
      const page = await this.#read({
        ...(start_time === undefined ? {} : { start_time }),
        limit: 1000,
        offset: lines.length,
      })
      lines.push(...page.items)
      isMore = page.hasNextPage() && lines.length < 20_000
    }
    const kept = since === undefined ? [] : this.live.filter(({ timestamp }) => Date.parse(timestamp) < since)
    const next = [...kept, ...lines.reverse()]
    const isNew = next.length !== this.live.length || next.at(-1)?.timestamp !== last?.timestamp
    this.live = next
    this.error = undefined
    if (isNew) this.#tell()
  }

  #pollSoon(): void {
    if (this.#abort.signal.aborted) return
    this.#timer = setTimeout(() => {
      const work = this.isTailing && !document.hidden && this.isRead ? this.#readLive() : Promise.resolve()
      void work.catch((error: unknown) => this.#fail(error)).finally(() => this.#pollSoon())
    }, poll_ms)
  }

  #fail(error: unknown): void {
    if (this.#abort.signal.aborted) return
    this.error = error
    this.#tell()
  }

  #tell(): void {
    this.version++
    for (const listener of this.#listeners) listener()
  }
}
