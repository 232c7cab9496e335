import { jsonb, type Fragment, type Sql } from '../platform/postgres/database.ts'
import { newId } from '../platform/ids.ts'

export type LogLevel = 'debug' | 'info' | 'warn' | 'error'

/** An entry of an agent's log (spec 2.7). */
export interface AgentLogEntry {
  agent_id: string
  task_id?: string | undefined
  level: LogLevel
  message: string
  context?: Record<string, unknown>
}

/** Maximum bytes in UTF-8 (decision D48). */
const message_bytes = 8192
const context_bytes = 16_384
/** Minimum length of a secret: shorter values are ordinary words, whose replacement would garble entries. */
const secretLengthMin = 4

/** Patterns of secrets that are redacted in every log entry (decision D105). */
const secretPatterns = /cadre_[0-9a-f]{32}|Bearer \S+|\bsk-[A-Za-z0-9_-]{8,}/g

/** Finds what may have to change in a text before it is stored; nearly every text has none of it. */
const needsWork = /cadre_|Bearer |sk-|[\0\uD800-\uDFFF]/

/** Replaces secrets in a text: the given values, and everything with the form of a key. */
export function redact(text: string, secrets: readonly string[] = []): string {
  let clean = text
  // Longest first, because one secret may contain another, and before the patterns, because a partial match would hide
  // the rest of a secret.
  for (const secret of secrets.toSorted((a, b) => b.length - a.length))
    if (secret.length >= secretLengthMin) clean = clean.replaceAll(secret, '[redacted]')
  return clean.replaceAll(secretPatterns, '[redacted]')
}

/**
 * Writes entries into an agent's log, in the caller's transaction. Messages and contexts are redacted, then cut to
 * their bounds (decision D48). `secrets` are the values of the agent's environment variables.
 */
export async function writeAgentLog(
  sql: Sql,
  entries: readonly AgentLogEntry[],
  secrets: readonly string[] = [],
): Promise<void> {
  if (entries.length > 0) await sql.run(insertLogRows(sql, agentLogRows(entries, secrets)))
}

/**
 * The insert of entries, as part of a caller's statement. Entries for which `condition` is false are left out; it may
 * refer to the entry as `entry`.
 */
export function insertLogRows(
  { fragment }: Sql,
  rows: readonly AgentLogRow[],
  condition: Fragment = fragment`true`,
): Fragment {
  return fragment`
    insert into agent_log (id, agent_id, task_id, timestamp, level, message, context)
    select id, agent_id, task_id, clock_timestamp(), level, message, context
    from jsonb_to_recordset(${jsonb(rows)}::jsonb) as entry(id text, agent_id text, task_id text, level text, message text, context jsonb)
    where ${condition}`
}

/** An entry as stored, for statements that write more than the log. */
export interface AgentLogRow {
  id: string
  agent_id: string
  task_id: string | null
  level: LogLevel
  message: string
  context: Record<string, unknown>
}

/** Redacts entries and cuts them to their bounds. */
export function agentLogRows(entries: readonly AgentLogEntry[], secrets: readonly string[] = []): AgentLogRow[] {
  return entries.map(({ agent_id, task_id, level, message, context }) => ({
    id: newId('log'),
    agent_id,
    task_id: task_id ?? null,
    level,
    message: cutBytes(stored(message, secrets), message_bytes),
    context: boundedContext(context ?? {}, secrets),
  }))
}

/** A text as it is stored: redacted, and without what PostgreSQL refuses. */
function stored(text: string, secrets: readonly string[]): string {
  if (secrets.length === 0 && !needsWork.test(text)) return text
  return redact(text, secrets).toWellFormed().replaceAll('\u0000', '')
}

function boundedContext(context: Record<string, unknown>, secrets: readonly string[]): Record<string, unknown> {
  const clean = redactValue(context, secrets) as Record<string, unknown>
  const text = JSON.stringify(clean)
  if (Buffer.byteLength(text) <= context_bytes) return clean
  return { truncated: true, text: cutBytes(text, context_bytes / 2) }
}

/** Redacts every text of a value separately, because in the JSON of the whole a pattern could match across quotes. */
function redactValue(value: unknown, secrets: readonly string[]): unknown {
  if (typeof value === 'string') return stored(value, secrets)
  if (Array.isArray(value)) return value.map((item) => redactValue(item, secrets))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [stored(key, secrets), redactValue(item, secrets)]),
  )
}

function cutBytes(text: string, bytes: number): string {
  // A character takes at most three bytes for each unit of the text.
  if (text.length * 3 <= bytes) return text
  const buffer = Buffer.from(text)
  if (buffer.length <= bytes) return buffer.toString()
  // A character that was cut in two would decode to U+FFFD, so it is left out.
  return buffer
    .subarray(0, bytes)
    .toString()
    .replace(/(?<!\uFFFD)\uFFFD+$/, '')
}
