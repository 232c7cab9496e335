import type { Sql } from '../../../platform/postgres/database.ts'

/** The limit of failures that is reached; of several the one that lasts longest. */
export interface TooManyFailures {
  /** Failures that the limit allows. */
  limit: number
  /** Length of its window. */
  window_seconds: number
  /** Unix seconds of the next allowed attempt. */
  reset: number
  retry_after_seconds: number
}

/** An allowed attempt to sign in, counted as failed until it succeeds; or the limit that refused it. */
export type Attempt = { id: number } | TooManyFailures

/**
 * Allows an attempt unless there were too many failures: 5 of an account from an IP address in 15 minutes, 20 of an
 * account or 100 from an IP address in an hour (decision D66). The attempt is counted before the password is checked,
 * under locks on account and IP address (always in this order), so that simultaneous guesses cannot exceed the limit.
 */
export async function beginAttempt(sql: Sql, account: string, address: string): Promise<Attempt> {
  return sql.begin(async (tx) => {
    await tx`select pg_advisory_xact_lock(hashtextextended('sign-in of ' || lower(${account}), 0))`
    await tx`select pg_advisory_xact_lock(hashtextextended('sign-in from ' || ${address}, 0))`
    // A window is full while its nth latest failure lies in it.
    const [full] = await tx<TooManyFailures>`
      with full_until(at, failures, window_seconds) as (
        (select at + interval '15 minutes', 5, 900 from login_attempt
          where account = lower(${account}) and ip = ${address} and at > now() - interval '15 minutes'
          order by at desc offset 4 limit 1)
        union all
        (select at + interval '1 hour', 20, 3600 from login_attempt
          where account = lower(${account}) and at > now() - interval '1 hour' order by at desc offset 19 limit 1)
        union all
        (select at + interval '1 hour', 100, 3600 from login_attempt
          where ip = ${address} and at > now() - interval '1 hour' order by at desc offset 99 limit 1)
      )
      select failures as "limit", window_seconds, ceil(extract(epoch from at))::bigint as reset,
        greatest(1, ceil(extract(epoch from at - now())))::int as retry_after_seconds
      from full_until order by at desc limit 1`
    if (full) return full
    const [attempt] = await tx<{ id: number }>`
      insert into login_attempt (account, ip) values (lower(${account}), ${address}) returning id`
    if (!attempt) throw new Error('an inserted attempt is returned')
    return attempt
  })
}

/** Clears the failures of this account from this IP address after a success. */
export async function clearAttempts(tx: Sql, account: string, address: string): Promise<void> {
  await tx`delete from login_attempt where account = lower(${account}) and ip = ${address}`
}

/** Clears the failures of this account from every IP address. */
export async function clearAllAttempts(tx: Sql, account: string): Promise<void> {
  await tx`delete from login_attempt where account = lower(${account})`
}

/** Removes an attempt that ended before the password was checked. */
export async function forgetAttempt(sql: Sql, id: number): Promise<void> {
  await sql`delete from login_attempt where id = ${id}`
}
