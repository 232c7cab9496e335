import type { ServerResponse } from 'node:http'
import { once } from 'node:events'
import { isFinished, isTerminalEvent, type LiveEventType, type TaskState } from '#contract/task-lifecycle.ts'
import type { Sql } from '../platform/database.ts'
import type { Hub, TaskEvent } from './streams-hub.ts'

/** How soon a client comes back after the connection was lost. */
export const retry_ms = 1000
/** A comment this often keeps proxies from closing a quiet stream. */
export const comment_ms = 15_000
/** A reader that has this much waiting is cut off: it comes back and is told the rest from the database. */
export const waitingBytesMax = 1_048_576
/** How long a replay waits for a reader that does not read. */
export const drain_ms = 30_000
/** Events read from the database at once. */
export const replayEvents = 500

export interface TaskStreamOptions {
  hub: Hub
  sql: Sql
  task_id: string
  /** The last sequence that the reader has; 0 for all. */
  after: number
  /** The task as its reader sees it; undefined when it is gone. */
  snapshot: () => Promise<TaskSnapshot | undefined>
  /** Headers of the answer beside those of a stream. */
  headers: Record<string, string | number | string[]>
  status?: number
}

/** A task at a moment, with what the stream needs of it. */
export interface TaskSnapshot {
  task: unknown
  status: TaskState
  last_sequence: number
}

/**
 * Streams a task to one reader (tasks 6): first `task.snapshot`, then every kept event after `after`, then what happens;
 * closes after the terminal event. Kept events come exactly once and in order, whichever process runs the task. Deltas
 * come only while the task runs in this process, carry no id, and begin with a `message.snapshot`.
 *
 * Takes over `response` and resolves when the stream has ended, however it ended; holds no connection of the database
 * while it waits.
 */
export async function streamTask(response: ServerResponse, options: TaskStreamOptions): Promise<void> {
  const stream = new TaskStream(response, options)
  try {
    await stream.run()
  } catch {
    // The database is out of reach: the reader comes back by itself and continues where it was.
    response.destroy()
  } finally {
    stream.leave()
  }
}

class TaskStream {
  readonly #response: ServerResponse
  readonly #options: TaskStreamOptions
  readonly #unwatch: () => void
  readonly #closed = new AbortController()
  #last: number
  /** Nothing is missing before what happens next, so it can be written as it comes. */
  #live = false
  #wake = Promise.withResolvers<void>()

  constructor(response: ServerResponse, options: TaskStreamOptions) {
    this.#response = response
    this.#options = options
    this.#last = options.after
    // Watching begins before the first read, so that nothing falls between the two.
    this.#unwatch = options.hub.watch(options.task_id, {
      seen: () => this.#last,
      events: (events) => this.#happened(events),
      look: () => this.#catchUp(),
      delta: (message_id, text) => void (this.#live && this.#frame('message.delta', { message_id, text })),
      close: () => this.#end(),
    })
    response.on('close', () => this.#end())
    // What is written after the reader has gone is lost on purpose.
    response.on('error', () => {})
    // It left before the stream began, and that is not told again.
    if (response.destroyed) this.#end()
  }

  async run(): Promise<void> {
    if (this.#closed.signal.aborted) return
    const { status = 200, headers } = this.#options
    this.#response.writeHead(status, {
      ...headers,
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-store',
      'x-accel-buffering': 'no',
    })
    this.#write(`retry: ${retry_ms}\n\n`)
    const comments = setInterval(() => this.#write(':\n\n'), comment_ms)
    try {
      const first = await this.#options.snapshot()
      if (!first) return this.#end()
      this.#frame('task.snapshot', { task: first.task }, first.last_sequence)
      // A reader that claims to have more than there is would miss the end.
      this.#last = Math.min(this.#last, first.last_sequence)
      if (isFinished(first.status) && first.last_sequence <= this.#last) return this.#end()
      for (let isFirst = true; !this.#closed.signal.aborted; isFirst = false) {
        this.#wake = Promise.withResolvers<void>()
        const before = this.#last
        await this.#replay()
        // There was nothing where something should be: the task may be gone, and then nothing will tell its end.
        if (!isFirst && this.#last === before && !(await this.#options.snapshot())) return this.#end()
        await this.#wake.promise
      }
    } finally {
      clearInterval(comments)
    }
  }

  leave(): void {
    this.#end()
  }

  /** Writes everything that the database has beyond the last one written, then goes live. */
  async #replay(): Promise<void> {
    const { sql, task_id, hub } = this.#options
    this.#live = false
    await this.#drained()
    for (;;) {
      const events = await listTaskEvents(sql, task_id, { after: this.#last, limit: replayEvents })
      for (const event of events) {
        this.#event(event)
        await this.#drained()
        if (this.#closed.signal.aborted) return
      }
      if (this.#closed.signal.aborted) return
      if (events.length < replayEvents) break
    }
    const message = hub.currentMessage(task_id)
    if (message) this.#frame('message.snapshot', message)
    this.#live = true
  }

  #happened(events: readonly TaskEvent[]): void {
    if (!this.#live || (events[0]?.sequence ?? 0) > this.#last + 1) return this.#catchUp()
    for (const event of events) {
      if (event.sequence <= this.#last) continue
      // A reader may be slower than what happens: a replay waits for it.
      if (this.#response.writableLength > waitingBytesMax) return this.#catchUp()
      this.#event(event)
    }
  }

  #catchUp(): void {
    this.#live = false
    this.#wake.resolve()
  }

  #event(event: TaskEvent): void {
    if (this.#closed.signal.aborted) return
    this.#last = event.sequence
    this.#write(`id: ${event.sequence}\nevent: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`)
    if (isTerminalEvent(event.type)) this.#end()
  }

  /** A frame without an id, so that a reader's Last-Event-ID stays on a kept event. */
  #frame(type: LiveEventType, data: object, sequence = this.#last): void {
    const { task_id } = this.#options
    this.#write(
      `event: ${type}\ndata: ${JSON.stringify({ sequence, task_id, type, created_at: new Date().toISOString(), data })}\n\n`,
    )
  }

  #write(text: string): void {
    if (this.#closed.signal.aborted) return
    // What is waiting counts, not what comes: one event may be larger than the bound, and would never be read.
    if (this.#response.writableLength > waitingBytesMax) this.#response.destroy()
    else this.#response.write(text)
  }

  async #drained(): Promise<void> {
    if (!this.#response.writableNeedDrain) return
    const signal = AbortSignal.any([this.#closed.signal, AbortSignal.timeout(drain_ms)])
    await once(this.#response, 'drain', { signal }).catch(
      () => void (this.#closed.signal.aborted || this.#response.destroy()),
    )
  }

  #end(): void {
    if (this.#closed.signal.aborted) return
    this.#closed.abort()
    this.#wake.resolve()
    this.#unwatch()
    this.#response.end()
  }
}

/** Kept events of a task after a sequence, in order. */
export async function listTaskEvents(
  sql: Sql,
  task_id: string,
  { after, limit }: { after: number; limit: number },
): Promise<TaskEvent[]> {
  return sql<TaskEvent>`
    select sequence, task_id, type, created_at, data from task_event
    where task_id = ${task_id} and sequence > ${after} order by sequence limit ${limit}`
}

/**
 * Waits until a task is finished or waits for something, until `timeout_ms` has passed, or until `signal` aborts. Holds
 * no connection of the database meanwhile. `settled` reads the task and says whether that is so.
 */
export async function awaitTask(
  hub: Hub,
  task_id: string,
  { timeout_ms, signal, settled }: { timeout_ms: number; signal: AbortSignal; settled: () => Promise<boolean> },
): Promise<void> {
  let wake = Promise.withResolvers<void>()
  const look = (): void => wake.resolve()
  const closing = new AbortController()
  const over = AbortSignal.any([signal, closing.signal, AbortSignal.timeout(timeout_ms)])
  over.addEventListener('abort', look)
  const unwatch = hub.watch(task_id, {
    seen: () => 0,
    events: (events) => void (events.some(({ type }) => isTerminalEvent(type) || type === 'task.waiting') && look()),
    look,
    close: () => closing.abort(),
  })
  try {
    while (!(await settled()) && !over.aborted) {
      await wake.promise
      wake = Promise.withResolvers<void>()
    }
  } finally {
    unwatch()
    over.removeEventListener('abort', look)
  }
}
