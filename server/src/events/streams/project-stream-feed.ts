import type { Logger } from 'pino'
import type { Sql } from '../../platform/postgres/database.ts'
import { includes, readCursor, type Cursor, type Snapshot } from './project-stream-cursor.ts'
import { agentFrame, eventFrames, idFrame, snapshotFrame } from './project-stream-frames.ts'
import {
  countProject,
  listAgentStates,
  readBeginning,
  readNews,
  readNow,
  replay_seconds,
} from './project-stream-queries.ts'
import type { Bus } from './streams-bus.ts'

/** A reader of one project's stream. All calls are synchronous and must not throw. */
export interface ProjectWatcher {
  /** Complete frames, in order; many watchers share the same bytes. */
  frames(bytes: Buffer): void
  /** The process stops, or the stream must start over. */
  close(): void
}

/** The source of project streams: one query for all watchers of the process. */
export interface ProjectFeed {
  /**
   * Watches until the returned function is called. The first frames are `project.snapshot` and what the reader missed
   * since `last_event_id`. The frames of new events follow, each exactly once.
   */
  watch(project_id: number, last_event_id: string | undefined, watcher: ProjectWatcher): () => void
  close(): void
}

/** Events are collected this long, so that one query reads all of them. */
const gather_ms = 30
/** Poll interval for events whose signal was lost with its process: the longest delay of a reader. */
const pollInterval_ms = 2000
/** Maximum number of watchers that start with one query, so that a wave of reconnects does not delay others. */
const beginMax = 50
/** Interval at which the id of a quiet stream advances, so that its reader need not start over after a reconnect. */
const id_ms = 15_000
const retry_ms = 500

interface Watching {
  project_id: number
  watcher: ProjectWatcher
}
interface Beginning extends Watching {
  cursor: Cursor | undefined
}

/** Opens the feed of this process. Without readers it costs nothing. */
export function openProjectFeed(options: { sql: Sql; bus: Bus; log: Logger }): ProjectFeed {
  const feed = new Feed(options)
  return {
    watch: (project_id, last_event_id, watcher) => feed.watch(project_id, last_event_id, watcher),
    close: () => feed.close(),
  }
}

class Feed {
  readonly #sql: Sql
  readonly #bus: Bus
  readonly #log: Logger
  readonly #watchers = new Map<number, Set<ProjectWatcher>>()
  readonly #beginning = new Set<Beginning>()
  /** Agents whose state may have changed. */
  readonly #agents = new Set<string>()
  /** Snapshot of the events that all readers have. */
  #published: Snapshot | undefined
  /** Cursors from before this time are invalid: see `readBeginning`. */
  #beginning_at: number | undefined
  #leave: (() => void) | undefined
  #timer: NodeJS.Timeout | undefined
  #due_at = Infinity
  #looking = false
  #ids_at = 0
  #closed = false

  constructor({ sql, bus, log }: { sql: Sql; bus: Bus; log: Logger }) {
    this.#sql = sql
    this.#bus = bus
    this.#log = log
  }

  watch(project_id: number, last_event_id: string | undefined, watcher: ProjectWatcher): () => void {
    const begin = { project_id, watcher, cursor: last_event_id === undefined ? undefined : readCursor(last_event_id) }
    this.#beginning.add(begin)
    if (this.#closed) queueMicrotask(() => watcher.close())
    this.#listen()
    this.#look(0)
    return () => {
      this.#beginning.delete(begin)
      const all = this.#watchers.get(project_id)
      all?.delete(watcher)
      if (all?.size === 0) this.#watchers.delete(project_id)
      if (this.#isIdle()) this.#rest()
    }
  }

  close(): void {
    this.#closed = true
    this.#closeAll()
    this.#rest()
  }

  #closeAll(): void {
    const beginning = [...this.#beginning].map(({ watcher }) => watcher)
    for (const watcher of [...beginning, ...[...this.#watchers.values()].flatMap((all) => [...all])]) watcher.close()
  }

  #isIdle(): boolean {
    return this.#closed || (this.#watchers.size === 0 && this.#beginning.size === 0)
  }

  #listen(): void {
    if (this.#leave || this.#closed) return
    const look = (): void => this.#look(gather_ms)
    const lookAtAgent = (agent_id: string): void => {
      this.#agents.add(agent_id)
      look()
    }
    const leaves = [
      this.#bus.on('task', look),
      // A new task has no `task` signal before a worker claims it.
      this.#bus.on('jobs', look),
      this.#bus.on('agent', lookAtAgent),
      this.#bus.on('stop', lookAtAgent),
      this.#bus.onGap(look),
    ]
    this.#leave = () => leaves.forEach((leave) => leave())
  }

  /** Stops polling and listening when the last reader has left. */
  #rest(): void {
    clearTimeout(this.#timer)
    this.#due_at = Infinity
    this.#leave?.()
    this.#leave = undefined
    this.#agents.clear()
    this.#published = undefined
  }

  /** Looks after at most `after_ms`; while a look is in progress, that long after it. */
  #look(after_ms: number): void {
    const at = performance.now() + after_ms
    if (at >= this.#due_at || this.#isIdle()) return
    this.#due_at = at
    if (!this.#looking) this.#schedule()
  }

  #schedule(): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => void this.#lookNow(), Math.max(0, this.#due_at - performance.now()))
    this.#timer.unref()
  }

  async #lookNow(): Promise<void> {
    this.#looking = true
    this.#due_at = performance.now() + pollInterval_ms
    try {
      await this.#begin()
    } catch (error) {
      if (!this.#isIdle()) this.#log.warn({ err: error }, 'the events of projects could not be read; retrying')
      this.#due_at = performance.now() + retry_ms
    } finally {
      this.#looking = false
      if (this.#isIdle()) this.#rest()
      else this.#schedule()
    }
  }

  /**
   * Sends news to current watchers, then starts new ones from the same snapshot, so that no event is missed in between.
   */
  async #begin(): Promise<void> {
    const beginning = [...this.#beginning].slice(0, beginMax)
    if (beginning.length === 0) return this.#publish(this.#sql)
    await this.#sql.begin(async (tx) => {
      await tx.script('set transaction isolation level repeatable read, read only')
      this.#beginning_at ??= await readBeginning(tx)
      // Without readers the earlier snapshot is useless.
      if (this.#watchers.size === 0 || !this.#published) this.#published = await readNow(tx)
      await this.#publish(tx)
      const published = this.#published
      if (!published) return
      const counted = new Map<number, Awaited<ReturnType<typeof countProject>>>()
      for (const begin of beginning) {
        const { project_id, watcher } = begin
        const counts = counted.get(project_id) ?? (await countProject(tx, project_id))
        counted.set(project_id, counts)
        const missed = await this.#missed(tx, begin, published)
        // It may have left meanwhile.
        if (!this.#beginning.delete(begin)) continue
        const all = this.#watchers.get(project_id) ?? new Set()
        this.#watchers.set(project_id, all.add(watcher))
        const id = missed ? undefined : published
        const first = snapshotFrame(project_id, { ...counts, resumed: missed !== undefined }, id)
        watcher.frames(Buffer.from(first + (missed ?? '')))
      }
    })
    if (this.#beginning.size > 0) this.#due_at = performance.now()
  }

  /** The frames that a reader missed up to a snapshot; undefined if it must start over. */
  async #missed(tx: Sql, { cursor, project_id }: Beginning, published: Snapshot): Promise<string | undefined> {
    if (!cursor || published.at - cursor.behind.at > replay_seconds) return undefined
    if (this.#beginning_at === undefined || cursor.behind.at < this.#beginning_at) return undefined
    const news = await readNews(tx, cursor, [project_id])
    if (!news || news.next.xmax !== published.xmax) return undefined
    const { behind, within } = cursor
    if (!within) return eventFrames(news.events, behind, published) + idFrame(published)
    // The rest of the previous batch comes first, because each batch has its own snapshots.
    const rest = news.events.filter(({ xid }) => includes(within.next, xid))
    const later = news.events.filter(({ xid }) => !includes(within.next, xid))
    return eventFrames(rest, behind, within.next) + eventFrames(later, within.next, published) + idFrame(published)
  }

  /** Sends all watchers the events since the last look. */
  async #publish(sql: Sql): Promise<void> {
    for (let isWhole = false; !isWhole && this.#published && this.#watchers.size > 0;) {
      const published = this.#published
      const news = await readNews(sql, { behind: published }, [...this.#watchers.keys()])
      if (!news) {
        this.#published = undefined
        return this.#closeAll()
      }
      this.#published = news.next
      isWhole = news.isWhole
      for (const [project_id, events] of Map.groupBy(news.events, (event) => event.project_id))
        this.#send(project_id, eventFrames(events, published, news.next))
    }
    await this.#publishAgents(sql)
    if (this.#published && performance.now() - this.#ids_at > id_ms) {
      this.#ids_at = performance.now()
      for (const project_id of this.#watchers.keys()) this.#send(project_id, idFrame(this.#published))
    }
  }

  async #publishAgents(sql: Sql): Promise<void> {
    const ids = [...this.#agents]
    this.#agents.clear()
    if (ids.length === 0 || this.#watchers.size === 0) return
    for (const agent of await listAgentStates(sql, ids, [...this.#watchers.keys()]))
      this.#send(agent.project_id, agentFrame(agent))
  }

  #send(project_id: number, frames: string): void {
    const bytes = Buffer.from(frames)
    for (const watcher of this.#watchers.get(project_id) ?? []) watcher.frames(bytes)
  }
}
