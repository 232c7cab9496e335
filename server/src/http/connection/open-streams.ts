import type { ServerResponse } from 'node:http'
import { bounds } from '#contract/core/limits.ts'
import { Problem } from '#contract/core/problems.ts'
import type { Sql } from '../../platform/postgres/database.ts'
import type { RateSettings } from '../access/rate-limit.ts'
import { whenClosed } from './until-closed.ts'

/** A worker without a heartbeat for this long is dead, and its streams are closed. */
const lease_seconds = 10
/** `Retry-After` for a credential with the maximum of open streams, whose end is up to their readers. */
const retry_seconds = 5
/**
 * The stored count is lowered this long after a stream closes, so that a new stream in its place needs no write.
 * Another process that reached the limit sees the room up to twice this time later.
 */
const release_ms = 100
/** Delay before a failed write of a count is repeated. */
const rewrite_ms = 5000
const batch = 1000

/** Counts open streams and waits by credential, exactly over all processes. */
export interface OpenStreams {
  /**
   * Counts a response until its connection closes; a repeated call counts it once.
   * @throws `rate_limit_exceeded` if the credential has the maximum open
   */
  take(subject: string, response: ServerResponse): Promise<void>
}

export interface OpenStreamsOptions {
  sql: Sql
  /** The worker of this process: its streams count while it lives. */
  worker_id: string
  rates: RateSettings
}

/** The open streams of a credential in this process. Its writes run in sequence. */
interface Open {
  count: number
  /** The maximum since the timer was set. */
  peak: number
  written: number
  writing: Promise<unknown>
  /** Lowers the stored count after streams were closed. */
  timer?: NodeJS.Timeout | undefined
}

export function countOpenStreams({ sql, worker_id, rates }: OpenStreamsOptions): OpenStreams {
  const limit = Math.max(1, Math.floor(bounds.open_streams * rates.scale))
  const counted = new WeakSet<ServerResponse>()
  const open = new Map<string, Open>()

  const openOf = (subject: string): Open => {
    const found = open.get(subject) ?? { count: 0, peak: 0, written: 0, writing: Promise.resolve() }
    open.set(subject, found)
    return found
  }
  const after = <T>(of: Open, work: () => Promise<T>): Promise<T> => {
    const done = of.writing.then(work)
    of.writing = done.catch(() => {})
    return done
  }
  const lower = (subject: string, of: Open): Promise<void> =>
    after(of, async () => {
      const count = of.peak
      of.peak = of.count
      if (count !== of.written) {
        await writeCount(sql, { subject, worker_id, count })
        of.written = count
      }
      if (of.written > of.count) lowerLater(subject, of, release_ms)
      else if (of.written === 0 && !of.timer) open.delete(subject)
    })
  const lowerLater = (subject: string, of: Open, after_ms: number): void => {
    of.timer ??= setTimeout(() => {
      of.timer = undefined
      lower(subject, of).catch(() => lowerLater(subject, of, rewrite_ms))
    }, after_ms).unref()
  }

  return {
    async take(subject, response) {
      if (!rates.enabled || counted.has(response) || response.destroyed) return
      counted.add(response)
      const of = openOf(subject)
      const isTaken = await after(of, async () => {
        const count = of.count + 1
        if (count > limit) return false
        if (count > of.written) {
          if (!(await takeOne(sql, { subject, worker_id, count, limit }))) return false
          of.written = count
        }
        of.count += 1
        of.peak = Math.max(of.peak, of.count)
        return true
      })
      if (!isTaken) throw tooMany(limit)
      const release = (): void => {
        of.count -= 1
        lowerLater(subject, of, release_ms)
      }
      whenClosed(response, release)
    },
  }
}

/** The open streams of other living processes; `s` is the row. */
const others = (sql: Sql, worker_id: string) => sql.fragment`
  select key, value from jsonb_each(s.holders) h join worker w on w.id = h.key
  where h.key <> ${worker_id} and w.seen_at > now() - make_interval(secs => ${lease_seconds})`

/** Stores the count of this process, unless the total with the others would exceed `limit`. */
async function takeOne(
  sql: Sql,
  { subject, worker_id, count, limit }: { subject: string; worker_id: string; count: number; limit: number },
): Promise<boolean> {
  // The conflict locks the row, so of two processes the second counts what the first has taken.
  const rows = await sql.run(sql.fragment`
    insert into open_stream as s (subject, holders) values (${subject}, jsonb_build_object(${worker_id}::text, ${count}::int))
    on conflict (subject) do update set holders = excluded.holders
      || (select coalesce(jsonb_object_agg(key, value), '{}') from (${others(sql, worker_id)}) living)
    where ${count}::int + (select coalesce(sum(value::text::int), 0) from (${others(sql, worker_id)}) living) <= ${limit}::int
    returning 1 as taken`)
  return rows.length > 0
}

async function writeCount(
  sql: Sql,
  { subject, worker_id, count }: { subject: string; worker_id: string; count: number },
): Promise<void> {
  if (count > 0) {
    await sql`
      update open_stream set holders = holders || jsonb_build_object(${worker_id}::text, ${count}::int) where subject = ${subject}`
    return
  }
  await sql`update open_stream set holders = holders - ${worker_id}::text where subject = ${subject}`
  await sql`delete from open_stream where subject = ${subject} and holders = '{}'`
}

/** Deletes rows whose workers are all dead; returns their number. */
export async function sweepOpenStreams(sql: Sql): Promise<number> {
  const deleted = await sql`
    delete from open_stream s where subject in (
      select subject from open_stream o
      where not exists (select from jsonb_object_keys(o.holders) key join worker w on w.id = key) limit ${batch})
      and not exists (select from jsonb_object_keys(s.holders) key join worker w on w.id = key)
    returning 1`
  return deleted.length
}

function tooMany(limit: number): Problem {
  const bucket = 'tasks.open_streams'
  return new Problem(
    'rate_limit_exceeded',
    { limit, remaining: 0, retry_after: retry_seconds, bucket },
    {
      message: `A credential may have at most ${limit} open streams and waits. Close one, or try again in ${retry_seconds} s.`,
      members: { retry_after: retry_seconds },
      headers: { 'retry-after': String(retry_seconds) },
    },
  )
}
