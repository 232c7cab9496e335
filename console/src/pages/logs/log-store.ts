import { APIError } from '#sdk/errors.ts'
import { api } from '../../api/client.ts'
import { noteFailedRead } from '../../api/reach.ts'
import type { LogLine } from '../../task-parts/types.ts'
import { placeOf } from './log-place.ts'

/** What lines are asked for. */
export interface LogFilter {
  project: string
  /** Undefined: all agents of the project. */
  agent: string | undefined
  level?: LogLine['level'] | undefined
  search?: string | undefined
  task_id?: string | undefined
  start_time?: string | undefined
  end_time?: string | undefined
}

/** Lines of one millisecond that are looked through for one of them. */
const sameMoment_lines = 50
/** Lines of one request. */
const page_lines = 1000
/** Pages that are kept: those looked at longest ago go first. */
const pagesMax = 40
/** Lines that are written at the same time may be seen in any order for this long. */
const overlap_ms = 3000
/** How often new lines are asked for where nothing says that there are some. */
const poll_ms = 2000
/** The same while the project's stream is heard: some lines come without an event of a task. */
const seldom_ms = 15_000
/** After an event lines are read this much later, so that a burst of events is one reading. */
const burst_ms = 400

/**
 * A log of any length: lines up to an anchor are read by their distance from it, as they are looked at, and what
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
  /** Whether a caller reports activity of an agent with `happened`. */
  isTold = false
  error: unknown
  version = 0
  #anchor: string | undefined
  readonly #pages = new Map<number, LogLine[]>()
  readonly #reading = new Set<number>()
  readonly #abort = new AbortController()
  readonly #listeners = new Set<() => void>()
  #timer: ReturnType<typeof setTimeout> | undefined
  #isFollowing = false
  #isRefused = false
  #burst: ReturnType<typeof setTimeout> | undefined

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

  /** Reads the newest lines, and follows what comes after them; where the service is away, it is tried again until it answers. */
  async start(): Promise<void> {
    await this.#follow()
    this.#tell()
    this.#pollSoon()
  }

  async #readFirst(): Promise<void> {
    const newest = (await this.#read({ limit: 1 })).items[0]
    if (newest) {
      const anchor = new Date(Date.parse(newest.timestamp) - overlap_ms).toISOString()
      const page = await this.#read({ end_time: anchor, limit: page_lines })
      this.#anchor = anchor
      this.history = page.total
      this.#pages.set(0, page.items)
    }
    await this.#readLive()
    this.isRead = true
    this.#tell()
  }

  stop(): void {
    this.#abort.abort()
    clearTimeout(this.#timer)
    clearTimeout(this.#burst)
  }

  /** The agent has done something, of which there may be a line. */
  happened(): void {
    this.#burst ??= setTimeout(() => {
      this.#burst = undefined
      void this.#follow()
    }, burst_ms)
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
    if (this.#isAfter(timestamp)) return Math.max(0, this.count - 1)
    const { total } = await this.#read({ start_time: timestamp, limit: 1 })
    return Math.max(0, this.count - total)
  }

  /** The next error in a direction from a line; undefined where there is none. */
  async nextError(from: LogLine, direction: 'older' | 'newer'): Promise<LogLine | undefined> {
    if (direction === 'older')
      return (await this.#read({ level: 'error', end_time: from.timestamp, limit: 1 })).items[0]
    const start_time = new Date(Date.parse(from.timestamp) + 1).toISOString()
    if (this.#isAfter(start_time)) return undefined
    const { total } = await this.#read({ level: 'error', start_time, limit: 1 })
    if (total === 0) return undefined
    return (await this.#read({ level: 'error', start_time, limit: 1, offset: total - 1 })).items[0]
  }

  /**
   * Lines just before and after one, the oldest first, `count` on either side at most: of the filter's agents and time, but also those
   * that do not match it otherwise.
   */
  async around(line: LogLine, count: number): Promise<{ before: LogLine[]; after: LogLine[] }> {
    const { level: _, search: __, task_id: ___, ...filter } = this.filter
    // Bounds are whole milliseconds, and several lines may be of one.
    const next = new Date(Date.parse(line.timestamp) + 1).toISOString()
    const [older, newer] = await Promise.all([
      this.#read({ end_time: next, limit: sameMoment_lines + count }, filter),
      this.#isAfter(next) ? undefined : this.#read({ start_time: next, limit: 1 }, filter),
    ])
    const place = placeOf(line)
    const at = Math.max(
      0,
      older.items.findIndex((one) => placeOf(one) === place),
    )
    const after = older.items.slice(0, at).toReversed()
    const missing = Math.min(newer?.total ?? 0, count - after.length)
    if (newer && missing > 0) {
      const offset = newer.total - missing
      const { items } = await this.#read({ start_time: next, limit: missing, offset }, filter)
      after.push(...items.toReversed())
    }
    return { before: older.items.slice(at + 1, at + 1 + count).toReversed(), after: after.slice(0, count) }
  }

  /** The lines of rows, both ends included, the oldest first: read where they are not. */
  async lines(from: number, to: number): Promise<LogLine[]> {
    const { history } = this
    const newestOfHistory = Math.min(to, history - 1)
    const read: LogLine[] = []
    for (let row = newestOfHistory; row >= from; row -= page_lines) {
      const limit = Math.min(page_lines, row - from + 1)
      const { items } = await this.#read({ end_time: this.#anchor, offset: history - 1 - row, limit })
      read.push(...items)
    }
    return [...read.toReversed(), ...this.live.slice(Math.max(0, from - history), Math.max(0, to - history + 1))]
  }

  /** The newest lines that match, `most` of them, the oldest of those first, a page at a time. */
  async *newest(most: number, signal: AbortSignal): AsyncGenerator<LogLine[]> {
    for (let offset = Math.min(this.history, Math.max(0, most - this.live.length)); offset > 0;) {
      const limit = Math.min(1000, offset)
      offset -= limit
      signal.throwIfAborted()
      yield (await this.#read({ end_time: this.#anchor, offset, limit })).items.toReversed()
    }
    yield this.live
  }

  /** Whether a moment is later than all that the filter leaves. */
  #isAfter(timestamp: string): boolean {
    return this.filter.end_time !== undefined && Date.parse(timestamp) > Date.parse(this.filter.end_time)
  }

  #read(
    query: {
      end_time?: string | undefined
      start_time?: string
      level?: LogLine['level']
      limit: number
      offset?: number
    },
    { project, agent, ...filter }: LogFilter = this.filter,
  ) {
    // Both ends hold: what is asked for here lies within what the filter leaves.
    const [end_time] = [filter.end_time, query.end_time].filter((moment) => moment !== undefined).toSorted()
    const given = Object.fromEntries(
      Object.entries({ ...filter, ...query, end_time }).filter(([, value]) => value !== undefined),
    )
    const options = { signal: this.#abort.signal }
    return agent === undefined
      ? api.projects.logs(project, given, options).page()
      : api.agents.logs(project, agent, given, options).page()
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
    const isWell = this.error !== undefined
    this.live = next
    this.error = undefined
    if (isNew || isWell) this.#tell()
  }

  #pollSoon(): void {
    if (this.#abort.signal.aborted) return
    this.#timer = setTimeout(
      () => void this.#follow().finally(() => this.#pollSoon()),
      this.isTold && this.isRead ? seldom_ms : poll_ms,
    )
  }

  async #follow(): Promise<void> {
    if (this.#isRefused || this.#isFollowing || (this.isRead && (!this.isTailing || document.hidden))) return
    this.#isFollowing = true
    try {
      await (this.isRead ? this.#readLive() : this.#readFirst())
    } catch (error) {
      // What is refused stays refused: an agent that is gone is not asked for again and again.
      this.#isRefused = error instanceof APIError && error.status < 500 && error.status !== 429
      this.#fail(error)
    } finally {
      this.#isFollowing = false
    }
  }

  #fail(error: unknown): void {
    if (this.#abort.signal.aborted) return
    noteFailedRead(error)
    this.error = error
    this.#tell()
  }

  #tell(): void {
    this.version++
    for (const listener of this.#listeners) listener()
  }
}
