import type { ServerResponse } from 'node:http'
import { once } from 'node:events'
import { isFinished, isTerminalEvent, type LiveEventType, type TaskState } from '#contract/tasks/task-lifecycle.ts'
import type { Fragment, Sql } from '../../platform/postgres/database.ts'
import { isRest, type Hub, type TaskEvent } from './streams-hub.ts'

/** How soon a client comes back after the connection was lost. */
export const retry_ms = 1000
/** A comment this often keeps proxies from closing a quiet stream. */
export const comment_ms = 15_000
/** A reader with this much buffered is disconnected: it reconnects and gets the rest from the database. */
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
  /** Of a task that was made here for this reader, so that its beginning need not be read. */
  fresh?: FreshTask | undefined
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

/** A task as it was made, and what has happened to it since. */
export interface FreshTask {
  snapshot: TaskSnapshot
  /** All its events from the first, until now; undefined where this process does not know them all. Called once. */
  take: () => readonly TaskEvent[] | undefined
}

/** What of a task's row its first event tells. */
interface MadeTask {
  status: TaskState
  agent_id: string
  agent_version: number
  created_at: string
}

/**
 * Makes a task, and notes what happens to it from before that. `take` gives all its events and ends the noting: who calls it watches
 * from then on; undefined where another process has something to tell. `end` where no caller will take them. Throws what `make` throws.
 */
export async function recordMaking<Row extends MadeTask>(
  hub: Hub,
  task_id: string,
  make: () => Promise<Row>,
): Promise<{ row: Row; take: FreshTask['take']; end: () => void }> {
  const events: TaskEvent[] = []
  let isWhole = true
  const end = hub.watch(task_id, {
    seen: () => Infinity,
    events: (some) => void events.push(...some),
    look: () => void (isWhole = false),
  })
  try {
    const row = await make()
    const { created_at, status, agent_id, agent_version } = row
    // Who makes a task does not publish its first event.
    const first: TaskEvent = {
      ...{ sequence: 1, task_id, type: 'task.created', created_at },
      data: { status, agent_id, agent_version },
    }
    const take: FreshTask['take'] = () => {
      end()
      return isWhole ? [first, ...events.filter(({ sequence }) => sequence > first.sequence)] : undefined
    }
    return { row, take, end }
  } catch (error) {
    end()
    throw error
  }
}

/**
 * Streams a task to one reader: first `task.snapshot`, then every stored event after `after`, then live events. Closes
 * after the terminal event. Stored events come exactly once and in order, whichever process runs the task. Deltas carry
 * no id. A reader that has any of a message's text has all of it by `message.completed`.
 * Takes over `response` and resolves when the stream has ended for any reason. Holds no database connection while it
 * waits.
 */
export async function streamTask(response: ServerResponse, options: TaskStreamOptions): Promise<void> {
  const stream = new TaskStream(response, options)
  try {
    await stream.run()
  } catch {
    // The database is unreachable: the reader reconnects and continues from its position.
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
  /** The message whose text the reader is being sent, and how much of it it has. */
  #message: { id: string; sent: number } | undefined
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
      delta: (message_id, text) => this.#delta(message_id, text),
      message: (message_id, text) => void (this.#live && this.#snapshot(message_id, text)),
      reasoning: (message_id, text) => void (this.#live && this.#frame('reasoning.delta', { message_id, text })),
      close: () => this.#end(),
    })
    response.on('close', () => this.#end())
    // What is written after the reader has gone is lost on purpose.
    response.on('error', () => {})
    // It left before the stream began, and that is not sent again.
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
    if (this.#response.req.method === 'HEAD') return this.#end()
    this.#write(`retry: ${retry_ms}\n\n`)
    const comments = setInterval(() => this.#write(':\n\n'), comment_ms)
    try {
      const isFresh = this.#beginFresh()
      if (!isFresh) {
        const first = await this.#options.snapshot()
        if (!first) return this.#end()
        this.#frame('task.snapshot', { task: first.task }, first.last_sequence)
        // A reader that claims to have more than there is would miss the end.
        this.#last = Math.min(this.#last, first.last_sequence)
        if (isFinished(first.status) && first.last_sequence <= this.#last) return this.#end()
      }
      for (let isFirst = true; !this.#closed.signal.aborted; isFirst = false) {
        this.#wake = Promise.withResolvers<void>()
        const before = this.#last
        if (!isFirst || !isFresh) await this.#replay()
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

  /** Begins with what this process knows of a task that it has just made; false where that is not all. */
  #beginFresh(): boolean {
    const { fresh, after } = this.#options
    const events = fresh?.take()
    if (!fresh || !events || after > 0 || events.some(({ sequence }, i) => sequence !== i + 1)) return false
    this.#frame('task.snapshot', { task: fresh.snapshot.task }, fresh.snapshot.last_sequence)
    for (const event of events) this.#event(event)
    this.#goLive()
    return true
  }

  /** Writes everything that the database has beyond the last one written, then goes live. */
  async #replay(): Promise<void> {
    const { sql, task_id } = this.#options
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
    this.#goLive()
  }

  #goLive(): void {
    const { hub, task_id } = this.#options
    const message = hub.currentMessage(task_id)
    if (message) this.#snapshot(message.message_id, message.text)
    this.#live = true
  }

  #snapshot(message_id: string, text: string): void {
    this.#message = { id: message_id, sent: text.length }
    this.#frame('message.snapshot', { message_id, text })
  }

  #delta(message_id: string, text: string): void {
    if (!this.#live) return
    const sent = this.#message?.id === message_id ? this.#message.sent : 0
    this.#message = { id: message_id, sent: sent + text.length }
    this.#frame('message.delta', { message_id, text })
  }

  /** Before a message's end its reader gets the missing text: a delta may still be in flight. */
  #complete({ type, data }: TaskEvent): void {
    const { message_id, content } = data
    if ((type !== 'message.completed' && type !== 'message.discarded') || typeof message_id !== 'string') return
    this.#options.hub.ended(this.#options.task_id, message_id)
    const { id, sent = 0 } = this.#message ?? {}
    if (id !== message_id) return
    this.#message = undefined
    if (typeof content === 'string' && content.length > sent)
      this.#frame('message.delta', { message_id, text: content.slice(sent) })
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
    this.#complete(event)
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
    if (this.#response.destroyed) return
    this.#response.end()
    // A reader that does not read would never have the end, and hold its connection.
    const last = setTimeout(() => this.#response.destroy(), drain_ms).unref()
    this.#response.once('close', () => clearTimeout(last))
  }
}

/**
 * Kept events of a task after a sequence, in order. What they say in the words of a step, of a message or of the task's
 * output is stored there alone, and put in here: none of them changes any more.
 */
export async function listTaskEvents(
  sql: Sql,
  task_id: string,
  { after, limit }: { after: number; limit: number },
): Promise<TaskEvent[]> {
  return sql.run<TaskEvent>(selectTaskEvents(sql, sql.fragment`${task_id}`, sql.fragment`${after}`, limit))
}

/** The same as part of a statement of the caller. */
export function selectTaskEvents({ fragment }: Sql, task_id: Fragment, after: Fragment, limit: number): Fragment {
  return fragment`
    select e.sequence, e.task_id, e.type, e.created_at, case
        when e.data ? 'told_by_step' then
          e.data - 'told_by_step' || case s.type
            when 'model_call' then jsonb_build_object('content', s.output->'text', 'tool_calls', s.output->'tool_calls')
            else jsonb_build_object('content', s.output->'content') end
        when e.data ? 'told_by_message' then e.data - 'told_by_message' || jsonb_build_object('content', m.content)
        when e.data ? 'output_of_task' then e.data - 'output_of_task' || jsonb_build_object('output', t.output)
        else e.data end as data
    from task_event e
    left join task_step s on s.task_id = e.task_id and s.index = (e.data->>'told_by_step')::int
    left join task_message m on m.task_id = e.task_id and m.id = e.data->>'message_id' and e.data ? 'told_by_message'
    left join task t on t.id = e.task_id and e.data ? 'output_of_task'
    where e.task_id = ${task_id} and e.sequence > ${after} order by e.sequence limit ${limit}`
}

/**
 * Waits until a task is finished or waits for something, until `timeout_ms` has passed, or until `signal` aborts. Holds
 * no connection of the database meanwhile. `settled` reads the task and says whether that is so, from the row of the finished task where
 * this process has just written that; of a task that is `isNew` it is first asked when something happened to it.
 */
export async function awaitTask(
  hub: Hub,
  task_id: string,
  {
    timeout_ms,
    signal,
    settled,
    isNew = false,
  }: { timeout_ms: number; signal: AbortSignal; settled: (row?: object) => Promise<boolean>; isNew?: boolean },
): Promise<void> {
  let wake = Promise.withResolvers<void>()
  /** The last event that this process has published of it: had the task come to rest with one of those, it would be known here. */
  let seen = 0
  let finished: object | undefined
  const look = (): void => wake.resolve()
  let isOver = false
  const end = (): void => {
    isOver = true
    look()
  }
  signal.addEventListener('abort', end)
  if (signal.aborted) end()
  const timer = setTimeout(end, timeout_ms)
  const unwatch = hub.watch(task_id, {
    awaits: true,
    seen: () => seen,
    events: (events, row) => {
      finished = row
      seen = Math.max(seen, events.at(-1)?.sequence ?? 0)
      if (events.some(isRest)) look()
    },
    look,
    close: end,
  })
  try {
    // What another process did meanwhile is found soon by the hub, as all that this one did not publish.
    if (isNew && !hub.hasRested(task_id)) await wake.promise
    do {
      if (await settled(finished)) break
      await wake.promise
      wake = Promise.withResolvers<void>()
    } while (!isOver)
  } finally {
    unwatch()
    clearTimeout(timer)
    signal.removeEventListener('abort', end)
  }
}
