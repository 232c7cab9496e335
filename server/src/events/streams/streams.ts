import type { ServerResponse } from 'node:http'
import { once } from 'node:events'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { isFinished, isTerminalEvent, type LiveEventType, type TaskState } from '#contract/tasks/task-lifecycle.ts'
import type { Fragment, Sql } from '../../platform/postgres/database.ts'
import { isRest, type Hub, type TaskEvent } from './streams-hub.ts'

/** Delay before a client reconnects. */
export const retry_ms = 1000
/** Interval of comments, which keep proxies from closing a quiet stream. */
export const comment_ms = 15_000
/** A reader with this many buffered bytes is disconnected; it can reconnect and get the rest from the database. */
export const waitingBytesMax = 1_048_576
/** How long a replay waits for a reader that does not read. */
export const drain_ms = 30_000
/** Number of events read from the database at once. */
export const replayEvents = 500

export interface TaskStreamOptions {
  hub: Hub
  sql: Sql
  task_id: string
  /** The last sequence that the reader has; 0 for none. */
  after: number
  /** The task for its reader; undefined if it was deleted. */
  snapshot: () => Promise<TaskSnapshot | undefined>
  /** Set for a task that was created here for this reader, so that its first events need not be read. */
  fresh?: FreshTask | undefined
  /** Response headers besides those of a stream. */
  headers: Record<string, string | number | string[]>
  status?: number
}

/** A task at a moment, with what the stream needs of it. */
export interface TaskSnapshot {
  task: unknown
  status: TaskState
  last_sequence: number
}

/** A task that was just created, and what has happened to it since. */
export interface FreshTask {
  snapshot: TaskSnapshot
  /**
   * All its events from the first one until now; undefined if this process does not know all of them. Must be called
   * once.
   */
  take: () => readonly TaskEvent[] | undefined
}

/** The columns of a task that its first event has. */
interface MadeTask {
  status: TaskState
  agent_id: string
  agent_version: number
  created_at: string
}

/**
 * Creates a task, and records its events from the start. `take` returns all events and stops recording, so its caller
 * must watch from then on; it returns undefined if another process has written events. `end` must be called if `take`
 * will not be.
 * @throws errors of `make`
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
    // The creation of a task does not publish its first event.
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
 * after the terminal event. Stored events are sent exactly once and in order, whichever process runs the task. Deltas
 * have no id. A reader that has any text of a message has all of it by `message.completed`.
 *
 * Takes over `response` and resolves when the stream has ended for any reason. Holds no database connection while it
 * waits.
 */
export async function streamTask(response: ServerResponse, options: TaskStreamOptions): Promise<void> {
  const stream = new TaskStream(response, options)
  try {
    await stream.run()
  } catch {
    // The database is unavailable: the reader reconnects and continues at its position.
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
  /** Whether no earlier events are missing, so that new events can be written at once. */
  #live = false
  /** The message whose text is being sent, and how much of it was sent. */
  #message: { id: string; sent: number } | undefined
  #wake = Promise.withResolvers<void>()

  constructor(response: ServerResponse, options: TaskStreamOptions) {
    this.#response = response
    this.#options = options
    this.#last = options.after
    // Watching starts before the first read, so that no event is missed in between.
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
    // Writes after the reader has left are dropped on purpose.
    response.on('error', () => {})
    // The reader left before the stream started, and `close` is not emitted again.
    if (response.destroyed) this.#end()
  }

  async run(): Promise<void> {
    const { status = 200, headers, fresh } = this.#options
    // The request to the model leaves first: its connection writes at the end of the turn, and this head takes as long as an answer.
    if (fresh) await nextTurn()
    if (this.#closed.signal.aborted) return
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
        // A reader that claims to have more events than exist would miss the end.
        this.#last = Math.min(this.#last, first.last_sequence)
        if (isFinished(first.status) && first.last_sequence <= this.#last) return this.#end()
      }
      for (let isFirst = true; !this.#closed.signal.aborted; isFirst = false) {
        this.#wake = Promise.withResolvers<void>()
        const before = this.#last
        if (!isFirst || !isFresh) await this.#replay()
        // Nothing was found where an event should be. If the task was deleted, no event will announce its end.
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

  /** Starts with the events of a task that this process just created; false if it does not know all of them. */
  #beginFresh(): boolean {
    const { fresh, after } = this.#options
    const events = fresh?.take()
    if (!fresh || !events || after > 0 || events.some(({ sequence }, i) => sequence !== i + 1)) return false
    this.#frame('task.snapshot', { task: fresh.snapshot.task }, fresh.snapshot.last_sequence)
    for (const event of events) this.#event(event)
    this.#goLive()
    return true
  }

  /** Writes all stored events after the last one written, then goes live. */
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

  /** Before the end of a message, its reader gets the missing text, because deltas may still be in flight. */
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
      // The reader is slower than the events: a replay waits for it.
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

  /** A frame without an id, so that a reader's `Last-Event-ID` stays on a stored event. */
  #frame(type: LiveEventType, data: object, sequence = this.#last): void {
    const { task_id } = this.#options
    this.#write(
      `event: ${type}\ndata: ${JSON.stringify({ sequence, task_id, type, created_at: new Date().toISOString(), data })}\n\n`,
    )
  }

  #write(text: string): void {
    if (this.#closed.signal.aborted) return
    // The bytes already waiting count, not the new ones: a single event may exceed the bound.
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
    // A reader that does not read would never receive the end, and hold its connection.
    const last = setTimeout(() => this.#response.destroy(), drain_ms).unref()
    this.#response.once('close', () => clearTimeout(last))
  }
}

/**
 * Stored events of a task after a sequence, in order. Texts that are stored in a step, a message or the task's output
 * are added here; none of them changes any more.
 */
export async function listTaskEvents(
  sql: Sql,
  task_id: string,
  { after, limit }: { after: number; limit: number },
): Promise<TaskEvent[]> {
  return sql.run<TaskEvent>(selectTaskEvents(sql, sql.fragment`${task_id}`, sql.fragment`${after}`, limit))
}

/** The same as part of a caller's statement. */
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
 * Waits until a task is finished or waits, until `timeout_ms` has passed, or until `signal` aborts. Holds no database
 * connection meanwhile. `settled` reads the task and returns whether it is finished or waits; its argument is the
 * finished row, if this process has just written it. For a task that `isNew`, it is called only after something has
 * happened to the task.
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
  /** The last event that this process published; earlier events of this process did not end the wait. */
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
    // The hub soon finds what another process did meanwhile, like everything that this process did not publish.
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
