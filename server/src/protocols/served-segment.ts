import { once } from 'node:events'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { FastifyReply } from 'fastify'
import { Problem } from '#contract/core/problems.ts'
import type { Context } from '../context.ts'
import { untilClosed, whenClosed } from '../http/connection/until-closed.ts'
import type { Loading } from '../http/handle.ts'
import { abortWith } from '../platform/abort-signals.ts'
import type { Sql } from '../platform/postgres/database.ts'
import { endRequests, type RequestEnd, type RequestRecord } from './door-requests.queries.ts'
import type { FoundResponse } from './door-responses.queries.ts'
import { cancelSegment } from './open-segment.ts'
import { followSegment, makeReadEvents, type SegmentSource } from './segment-events.ts'
import type { SegmentFold, Happening } from './segment-fold.ts'

/** Interval of the comments or spaces that keep a quiet response open. */
const keepAlive_ms = 15_000
/** After this time, a blocking response sends its status before its body is known. */
const earlyAnswer_ms = 60_000
/** If more bytes are buffered for a reader, the stream waits until it drains. */
const waitingBytesMax = 1_048_576
const drain_ms = 30_000

/** Converts a segment to the frames of a protocol's stream. */
export interface Telling {
  /** The texts to write for an event, each in one write. */
  take(happening: Happening): string[] | Promise<string[]>
  /** The last texts of the stream. A stream that is `over` ends earlier. */
  end(): string[]
  over?(): boolean
}

/** Creates the source of a segment's events; `fresh` if this request created the segment. */
export type SourceOf = (found: FoundResponse, fresh?: { take: NonNullable<SegmentSource['fresh']> }) => SegmentSource

export function makeSourceOf({ database, engine }: Pick<Context, 'database' | 'engine'>): SourceOf {
  const read = makeReadEvents(database.indexed)
  return ({ task_id, first_sequence, before_sequence }, fresh) => ({
    ...{ sql: database.indexed, hub: engine.hub, read },
    ...{ task_id, first_sequence, before_sequence, fresh: fresh?.take },
  })
}

/** Streams a segment as server-sent events until it has ended. Takes over the connection. */
export async function streamSegment(
  reply: FastifyReply,
  source: SegmentSource,
  fold: SegmentFold,
  telling: Telling,
): Promise<undefined> {
  // The request to the model leaves first, as in `streamTask`.
  if (source.fresh) await nextTurn()
  const signal = untilClosed(reply)
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
  const timer = setInterval(() => response.write(': keep-alive\n\n'), keepAlive_ms)
  const ending = new AbortController()
  const unlink = abortWith(ending, signal)
  try {
    await followSegment(source, fold, {
      signal: ending.signal,
      async take(happenings) {
        for (const happening of happenings) for (const text of await telling.take(happening)) response.write(text)
        if (telling.over?.()) ending.abort(enough)
        if (response.writableLength > waitingBytesMax) await drained(reply)
      },
    })
    if (!signal.aborted && (fold.ended || telling.over?.())) {
      for (const text of telling.end()) response.write(text)
      response.end()
    } else response.destroy()
  } catch {
    // The database is unreachable or the task was deleted. The client can ask again with the id that it has.
    response.destroy()
  } finally {
    unlink()
    clearInterval(timer)
  }
  return undefined
}

/** Shared, because a new error would capture a stack trace each time. */
const enough = new DOMException('The answer is over.', 'AbortError')

async function drained({ raw }: FastifyReply): Promise<void> {
  await once(raw, 'drain', { signal: AbortSignal.timeout(drain_ms) }).catch(() => void raw.destroy())
}

/**
 * Waits for the end of a segment and returns the response body that `body` creates. Some clients give up on a silent
 * connection, so after a minute the status and spaces, which JSON allows, are sent. Then the function itself writes
 * the body and returns undefined.
 */
export async function awaitSegment(
  reply: FastifyReply,
  source: SegmentSource,
  fold: SegmentFold,
  {
    take,
    isOver = () => false,
    body,
  }: {
    take: (happening: Happening) => void
    isOver?: () => boolean
    /** May throw a problem to change the status, except with `isLate`. */
    body: (isLate: boolean) => unknown
  },
): Promise<unknown> {
  const signal = untilClosed(reply)
  const response = reply.raw
  let isLate = false
  let spaces: NodeJS.Timeout | undefined
  const early = setTimeout(() => {
    isLate = true
    const headers = reply.getHeaders() as Record<string, string>
    reply.hijack()
    response.on('error', () => {})
    response.writeHead(200, { ...headers, 'content-type': 'application/json; charset=utf-8' })
    response.write(' ')
    spaces = setInterval(() => response.write(' '), keepAlive_ms)
  }, earlyAnswer_ms)
  const ending = new AbortController()
  const unlink = abortWith(ending, signal)
  try {
    await followSegment(source, fold, {
      signal: ending.signal,
      text: false,
      take(happenings) {
        happenings.forEach(take)
        if (isOver()) ending.abort(enough)
      },
    })
  } catch (error) {
    if (!isLate) throw error
    response.destroy()
    return undefined
  } finally {
    unlink()
    clearTimeout(early)
    clearInterval(spaces)
  }
  if (!fold.ended && !isOver()) {
    // The process stops; another process can answer a retry.
    if (!isLate) throw new Problem('service_unavailable', undefined, { headers: { 'retry-after': '1' } })
    response.destroy()
    return undefined
  }
  if (!isLate) return body(false)
  response.end(JSON.stringify(body(true)))
  return undefined
}

/** Maximum number of ends that one statement writes. */
const endsMax = 100
/** How long the end of an answered request may wait for a batch. Only an explicit retry reads it. */
const answeredWait_ms = 100

/**
 * Writes the ends of requests: that of a broken connection immediately, because a retry may follow, others in
 * batches.
 */
export class RequestEnds {
  readonly #sql: Sql
  readonly #log: Context['log']
  #waiting: RequestEnd[] = []
  #timer: NodeJS.Timeout | undefined
  readonly #writing = new Set<Promise<void>>()

  constructor({ sql, log }: { sql: Sql; log: Context['log'] }) {
    this.#sql = sql
    this.#log = log
  }

  /** When the connection of a request closes, records whether its response was written completely. */
  note(reply: FastifyReply, record: RequestRecord): void {
    whenClosed(reply.raw, () => this.#add({ ...record, state: reply.raw.writableFinished ? 'answered' : 'broken' }))
  }

  /** Resolves when the ends of all broken requests so far are stored. */
  async written(): Promise<void> {
    await Promise.all(this.#writing)
  }

  /** Resolves when the ends of all requests that have closed so far are stored. */
  async flush(): Promise<void> {
    this.#write()
    await this.written()
  }

  #add(end: RequestEnd): void {
    this.#waiting.push(end)
    if (end.state === 'broken' || this.#waiting.length >= endsMax) this.#write()
    else this.#timer ??= setTimeout(() => this.#write(), answeredWait_ms)
  }

  #write(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    const ends = this.#waiting
    if (ends.length === 0) return
    this.#waiting = []
    const written = endRequests(this.#sql, ends)
      .catch((error: unknown) =>
        this.#log.warn({ err: error }, 'ends of requests could not be stored; retries may not be detected'),
      )
      .finally(() => this.#writing.delete(written))
    this.#writing.add(written)
  }
}

/**
 * Cancels the task of a segment if the connection closes before the task has ended and the request asked for that.
 */
export function cancelWithConnection(
  reply: FastifyReply,
  context: Pick<Context, 'sql' | 'engine' | 'log'>,
  by: Pick<Loading, 'principal' | 'actor'>,
  found: FoundResponse,
  fold: SegmentFold,
): void {
  reply.raw.once('close', () => {
    if (fold.ended) return
    cancelSegment(context.sql, context, by, found).catch((error: unknown) =>
      context.log.warn(
        { err: error, task_id: found.task_id },
        'task of a closed connection could not be canceled; it continues',
      ),
    )
  })
}
