import type { Logger } from 'pino'
import type { Sql } from '../../platform/postgres/database.ts'
import type { Principal } from './principal.ts'

/** Notes are written after at most this time. */
const interval_ms = 2000
/** Maximum number of distinct notes between two writes; further ones are dropped. */
const notesMax = 10_000

/**
 * Records what API keys are used for, and which limits refused requests. Notes are kept in memory and written by one
 * statement for many requests, so no request waits for them; a killed process loses the notes of its last two seconds.
 */
export interface Uses {
  /** A key was used from this address. Other kinds of credentials store that elsewhere. */
  seen(principal: Principal, ip: string): void
  /** The scopes of a key allowed the operation. */
  called(principal: Principal, operation: string): void
  /** A limit refused a request: a bucket, `tokens` or `tasks.open_streams`. */
  refused(principal: Principal, limit: string): void
  /** Writes all notes so far. */
  flush(): Promise<void>
}

interface Call {
  key_id: string
  operation: string
  requests: number
}

interface Refusal {
  org_id: string
  subject: string
  bucket: string
  user_id: string
  refused: number
}

export function noteUses({ sql, log }: { sql: Sql; log: Logger }): Uses {
  let origins = new Map<string, string>()
  let calls = new Map<string, Call>()
  let refusals = new Map<string, Refusal>()
  let timer: NodeJS.Timeout | undefined
  let writing = Promise.resolve()

  function hasRoom(): boolean {
    timer ??= setTimeout(() => void flush(), interval_ms).unref()
    return origins.size + calls.size + refusals.size < notesMax
  }

  function flush(): Promise<void> {
    clearTimeout(timer)
    timer = undefined
    const notes = { origins, calls, refusals }
    origins = new Map()
    calls = new Map()
    refusals = new Map()
    const isEmpty = Object.values(notes).every(({ size }) => size === 0)
    if (!isEmpty)
      writing = writing
        .then(() =>
          writeUses(sql, {
            origins: [...notes.origins].map(([key_id, ip]) => ({ key_id, ip })),
            calls: [...notes.calls.values()],
            refusals: [...notes.refusals.values()],
          }),
        )
        .catch((error: unknown) =>
          log.warn({ err: error }, 'the usage of API keys could not be written; some of it is lost'),
        )
    return writing
  }

  return {
    seen({ kind, credential_id }, ip) {
      if (kind === 'api_key' && (origins.has(credential_id) || hasRoom())) origins.set(credential_id, ip)
    },
    called({ kind, credential_id }, operation) {
      if (kind !== 'api_key') return
      const name = `${credential_id} ${operation}`
      const call = calls.get(name)
      if (call) call.requests += 1
      else if (hasRoom()) calls.set(name, { key_id: credential_id, operation, requests: 1 })
    },
    refused({ org_id, subject, user_id }, limit) {
      if (org_id === '') return
      const name = `${org_id} ${subject} ${limit}`
      const refusal = refusals.get(name)
      if (refusal) refusal.refused += 1
      else if (hasRoom()) refusals.set(name, { org_id, subject, bucket: limit, user_id, refused: 1 })
    },
    flush,
  }
}

/** A single statement with rows in the order of their keys, so that concurrent processes lock them in one order. */
async function writeUses(
  sql: Sql,
  { origins, calls, refusals }: { origins: { key_id: string; ip: string }[]; calls: Call[]; refusals: Refusal[] },
): Promise<void> {
  await sql`
    with origins as (
      update api_key k set last_ip = o.ip
      from jsonb_to_recordset(${JSON.stringify(origins)}::jsonb) as o(key_id text, ip text)
      where k.id = o.key_id and k.id in (
        select i.id from api_key i join jsonb_to_recordset(${JSON.stringify(origins)}::jsonb) as n(key_id text, ip text)
          on i.id = n.key_id and i.last_ip is distinct from n.ip
        -- The key is locked by a change: its next request counts.
        for no key update of i skip locked)
    ), calls as (
      insert into api_key_call as c (key_id, day, operation, requests, last_at)
      select key_id, (now() at time zone 'UTC')::date, operation, requests, now()
      from jsonb_to_recordset(${JSON.stringify(calls)}::jsonb) as n(key_id text, operation text, requests bigint)
      where exists (select from api_key k where k.id = n.key_id)
      order by key_id, operation
      on conflict (key_id, day, operation) do update set requests = c.requests + excluded.requests,
        last_at = greatest(c.last_at, excluded.last_at)
    )
    insert into refusal_hour as r (org_id, hour, subject, bucket, user_id, refused, last_at)
    select org_id, date_trunc('hour', now(), 'UTC'), subject, bucket, user_id, refused, now()
    from jsonb_to_recordset(${JSON.stringify(refusals)}::jsonb)
      as n(org_id text, subject text, bucket text, user_id text, refused bigint)
    order by org_id, subject, bucket
    on conflict (org_id, hour, subject, bucket) do update set refused = r.refused + excluded.refused,
      last_at = greatest(r.last_at, excluded.last_at)`
}
