import { once } from 'node:events'
import type { FastifyReply } from 'fastify'
import { TaskState } from '@a2a-js/sdk'
import { Problem } from '#contract/core/problems.ts'
import type { Context } from '../../context.ts'
import type { Sql } from '../../platform/postgres/database.ts'
import { followSegment, readSegment, type SegmentSource } from '../segment-events.ts'
import { SegmentFold, type Happening } from '../segment-fold.ts'
import { listSentMessages, type A2aTask } from './a2a-tasks.queries.ts'
import { A2aTaskState, numberOf, sequenceOf, type A2aFrame } from './task-state.ts'

/** A comment this often keeps a quiet stream open. */
const keepAlive_ms = 15_000
/** A blocking answer that takes longer than this begins with its status. */
const earlyAnswer_ms = 60_000
/** A reader with this much buffered is waited for. */
const waitingBytesMax = 1_048_576
const drain_ms = 30_000
/** Events that wait for a slow reader. */
const waitingEventsMax = 500
/** Frames made from one durable event at most, before the pieces of its text. */
const lastFrame = 15

type Reading = Pick<Context, 'sql' | 'engine' | 'public_url'>

/** A task before anything of its journal was read. */
export async function unread({ sql, public_url }: Pick<Context, 'sql' | 'public_url'>, row: A2aTask) {
  const fold = new SegmentFold({ first_sequence: 1, resolves: true, whole: true })
  return { fold, state: new A2aTaskState(row, fold, await listSentMessages(sql, row.id), public_url()) }
}

export function sourceOfTask({ sql, engine }: Pick<Context, 'sql' | 'engine'>, row: A2aTask, after = 0): SegmentSource {
  return { sql, hub: engine.hub, task_id: row.id, first_sequence: after + 1, before_sequence: null }
}

/** Reads a task up to an event, or to now. Gives the last event that was read. */
async function readUpTo(
  sql: Sql,
  row: A2aTask,
  fold: SegmentFold,
  state: A2aTaskState,
  before: number | null,
): Promise<number> {
  const source = { sql, task_id: row.id, first_sequence: 1, before_sequence: before }
  return readSegment(source, fold, (happenings) => {
    for (const happening of happenings) state.take(happening)
  })
}

/** A task as its journal has it now. */
export async function readTask(context: Reading, row: A2aTask): Promise<A2aTaskState> {
  const { fold, state } = await unread(context, row)
  await readUpTo(context.sql, row, fold, state, null)
  state.takeSent(Infinity)
  return state
}

/** Where a stream begins: with an event, the task at the message that continues it, the task as it is, or after a frame. */
export type StreamStart = { first_sequence: number; rests: boolean } | 'now' | { after: number }

/**
 * The events of a task, until it has ended, `isOver` says so after one, or `signal` aborts. Throws where it was cut off, because the
 * process stops.
 */
export async function* streamTask(
  context: Reading,
  row: A2aTask,
  start: StreamStart,
  { signal, isOver }: { signal: AbortSignal; isOver: (state: A2aTaskState) => boolean | Promise<boolean> },
): AsyncGenerator<A2aFrame, void, undefined> {
  const { fold, state } = await unread(context, row)
  let last = 0
  let after = -1
  if (typeof start === 'object' && 'after' in start) after = start.after
  else if (start === 'now' || start.first_sequence > 1) {
    const before = start === 'now' ? null : start.first_sequence
    last = await readUpTo(context.sql, row, fold, state, before)
    state.takeSent(before ?? Infinity)
    if (start !== 'now' && !start.rests) state.goesOn()
    yield state.frame(
      start === 'now' ? numberOf(sequenceOf(state.last), lastFrame) : numberOf(start.first_sequence) - 1,
    )
    if (start !== 'now' && start.rests && (await isOver(state))) return
  }
  if (fold.ended) return
  yield* following(sourceOfTask(context, row, last), fold, state, { after, signal, isOver })
}

async function* following(
  source: SegmentSource,
  fold: SegmentFold,
  state: A2aTaskState,
  {
    after,
    signal,
    isOver,
  }: { after: number; signal: AbortSignal; isOver: (state: A2aTaskState) => boolean | Promise<boolean> },
): AsyncGenerator<A2aFrame, void, undefined> {
  const queue: A2aFrame[] = []
  let news = Promise.withResolvers<void>()
  let room = Promise.withResolvers<void>()
  let over = false
  const ending = new AbortController()
  const take = async (happenings: Happening[]): Promise<void> => {
    for (const happening of happenings) queue.push(...state.take(happening).filter(({ number }) => number > after))
    if (happenings.length > 0 && (fold.ended || (await isOver(state)))) {
      over = true
      ending.abort()
    }
    news.resolve()
    if (queue.length > waitingEventsMax && !ending.signal.aborted) {
      room = Promise.withResolvers<void>()
      await room.promise
    }
  }
  let running = true
  let failure: unknown
  const reading = followSegment(source, fold, { signal: AbortSignal.any([signal, ending.signal]), take })
    .catch((error: unknown) => void (failure = error))
    .finally(() => {
      running = false
      news.resolve()
    })
  try {
    for (;;) {
      for (let frame = queue.shift(); frame; frame = queue.shift()) yield frame
      room.resolve()
      if (!running && queue.length === 0) break
      await news.promise
      news = Promise.withResolvers<void>()
    }
  } finally {
    ending.abort()
    room.resolve()
    await reading
  }
  if (failure)
    throw failure instanceof Error ? failure : new Error('the events of a task could not be read', { cause: failure })
  if (!over) throw new Error('the stream was cut off')
}

/** Waits for a task until `isOver` says so; throws 503 where the process stops before. */
export async function awaitTask(
  context: Reading,
  row: A2aTask,
  { signal, isOver }: { signal: AbortSignal; isOver: (state: A2aTaskState) => boolean },
): Promise<A2aTaskState> {
  const { fold, state } = await unread(context, row)
  const ending = new AbortController()
  await followSegment(sourceOfTask(context, row), fold, {
    signal: AbortSignal.any([signal, ending.signal]),
    take(happenings) {
      for (const happening of happenings) {
        state.take(happening)
        if (!ending.signal.aborted && isOver(state)) ending.abort()
      }
    },
  })
  if (!fold.ended && !ending.signal.aborted)
    throw new Problem('service_unavailable', undefined, { headers: { 'retry-after': '1' } })
  return state
}

/**
 * Does work that may take long, and gives its body. After a minute the answer begins with its status and spaces, which JSON
 * allows, because clients give up on a silent connection; then the body is written here, or what `failed` makes of a
 * problem, and undefined is given.
 */
export async function answerEarly(
  reply: FastifyReply,
  type: string,
  work: () => Promise<unknown>,
  failed: (error: unknown) => unknown,
): Promise<unknown> {
  const response = reply.raw
  let isLate = false
  let spaces: NodeJS.Timeout | undefined
  const early = setTimeout(() => {
    isLate = true
    const headers = reply.getHeaders() as Record<string, string>
    reply.hijack()
    response.on('error', () => {})
    response.writeHead(200, { ...headers, 'content-type': type })
    response.write(' ')
    spaces = setInterval(() => response.write(' '), keepAlive_ms)
  }, earlyAnswer_ms)
  try {
    const body = await work()
    if (!isLate) return body
    response.end(JSON.stringify(body))
  } catch (error) {
    if (!isLate) throw error
    response.end(JSON.stringify(failed(error)))
  } finally {
    clearTimeout(early)
    clearInterval(spaces)
  }
  return undefined
}

/** Whether a stream ends for a caller: its task has ended, or waits for what the caller may give. */
export function endsFor(state: A2aTaskState, { since, resolves }: { since: number; resolves: boolean }): boolean {
  if (state.isOver) return true
  if (state.interruptedAt === undefined || state.interruptedAt < since) return false
  return state.state === TaskState.TASK_STATE_INPUT_REQUIRED || resolves
}

/** Whether nothing has come after the event since which a task waits. */
export async function isAtHead(sql: Sql, task_id: string, sequence: number): Promise<boolean> {
  const later = await sql`
    select 1 from task_event where task_id = ${task_id} and sequence > ${sequence} and type in ('task.resumed', 'task.waiting') limit 1`
  return later.length === 0
}

/** Writes events to a connection, which it takes over. Each text is a frame of the stream, in one write. */
export async function writeEvents(reply: FastifyReply, events: AsyncIterable<string>): Promise<undefined> {
  const response = reply.raw
  const headers = reply.getHeaders() as Record<string, string>
  reply.hijack()
  response.on('error', () => {})
  response.writeHead(200, {
    ...headers,
    'content-type': 'text/event-stream; charset=utf-8',
    'cache-control': 'no-cache, no-transform',
    'x-accel-buffering': 'no',
  })
  response.flushHeaders()
  const timer = setInterval(() => response.write(': keep-alive\n\n'), keepAlive_ms)
  try {
    for await (const text of events) {
      response.write(text)
      if (response.writableLength > waitingBytesMax)
        await once(response, 'drain', { signal: AbortSignal.timeout(drain_ms) }).catch(() => void response.destroy())
      if (response.destroyed) break
    }
    response.end()
  } catch {
    // The process stops, or the database is out of reach: the client comes back with the id that it has.
    response.destroy()
  } finally {
    clearInterval(timer)
  }
  return undefined
}
