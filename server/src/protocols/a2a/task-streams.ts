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

/** Interval of the comments that keep a quiet stream open. */
const keepAlive_ms = 15_000
/** After this time, a blocking response sends its status before its body is known. */
const earlyAnswer_ms = 60_000
/** If more bytes are buffered for a reader, the stream waits until it drains. */
const waitingBytesMax = 1_048_576
const drain_ms = 30_000
/** Maximum number of frames that are queued for a slow reader. */
const waitingEventsMax = 500
/** The highest offset of a frame of a stored event, before its text deltas. */
const lastFrame = 15

type Reading = Pick<Context, 'sql' | 'engine' | 'public_url'>

/** The state of a task before its journal is read. */
export async function unread({ sql, public_url }: Pick<Context, 'sql' | 'public_url'>, row: A2aTask) {
  const fold = new SegmentFold({ first_sequence: 1, resolves: true, whole: true })
  return { fold, state: new A2aTaskState(row, fold, await listSentMessages(sql, row.id), public_url()) }
}

export function sourceOfTask({ sql, engine }: Pick<Context, 'sql' | 'engine'>, row: A2aTask, after = 0): SegmentSource {
  return { sql, hub: engine.hub, task_id: row.id, first_sequence: after + 1, before_sequence: null }
}

/** Reads the journal up to the event `before`, or to its current end. Returns the last event that was read. */
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

/** The current state of a task from its journal. */
export async function readTask(context: Reading, row: A2aTask): Promise<A2aTaskState> {
  const { fold, state } = await unread(context, row)
  await readUpTo(context.sql, row, fold, state, null)
  state.takeSent(Infinity)
  return state
}

/** Start of a stream: at the message that started or continued the task, at the current state, or after a frame. */
export type StreamStart = { first_sequence: number; rests: boolean } | 'now' | { after: number }

/**
 * The events of a task, until the task has ended, `isOver` returns true, or `signal` aborts. Throws if the stream is
 * cut off because the process stops.
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

/** Waits for a task until `isOver` returns true. Throws 503 if the process stops before. */
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
 * Does work that may take long and returns the body. Clients give up on a silent connection, so after a minute status
 * 200 and spaces, which JSON allows, are sent. Then the function itself writes the body, or that of `failed` for an
 * error, and returns undefined.
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

/** Whether a stream ends: the task has ended, or it waits for something that the caller may give. */
export function endsFor(state: A2aTaskState, { since, resolves }: { since: number; resolves: boolean }): boolean {
  if (state.isOver) return true
  if (state.interruptedAt === undefined || state.interruptedAt < since) return false
  return state.state === TaskState.TASK_STATE_INPUT_REQUIRED || resolves
}

/** Whether the task still waits: no later event resumed it. */
export async function isAtHead(sql: Sql, task_id: string, sequence: number): Promise<boolean> {
  const later = await sql`
    select 1 from task_event where task_id = ${task_id} and sequence > ${sequence} and type in ('task.resumed', 'task.waiting') limit 1`
  return later.length === 0
}

/** Takes over the connection and writes each text as one frame of the stream. */
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
    // The process stops, or the database is unreachable. The client reconnects with its last event id.
    response.destroy()
  } finally {
    clearInterval(timer)
  }
  return undefined
}
