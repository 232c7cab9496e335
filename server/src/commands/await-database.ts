import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import type { Logger } from 'pino'
import type { Config } from '../config/config.ts'
import { CommandError } from './command.ts'
import { explainDatabaseError } from './database-fault.ts'
import { Interrupted } from './interrupted.ts'

const connect_ms = 5000
const again_ms = 500
const say_ms = 5000

/**
 * What ends without an operator: nothing answers yet, no name yet, a server that starts, stops or has no connection left. A refused
 * password or a missing database is for an operator.
 */
const passing = /^(ECONN|ENOTFOUND|ETIMEDOUT|EHOST|ENETUNREACH|EAI_|EPIPE|ENOENT$|08|53300|57P)/
const passingWithoutCode = /timeout|terminated/i

/**
 * Waits until the database of `DATABASE_URL` takes connections, `CADRE_DATABASE_WAIT_SECONDS` at most, and says so every 5 s. Throws a
 * `CommandError` after that, what does not end without an operator at once, and `Interrupted` where `signal` ends it.
 */
export async function awaitDatabase(
  { database_url, database_wait_seconds }: Pick<Config, 'database_url' | 'database_wait_seconds'>,
  { log, signal }: { log: Logger; signal: AbortSignal },
): Promise<void> {
  const began = performance.now()
  const wait_ms = database_wait_seconds * 1000
  let said = -Infinity
  for (;;) {
    const error = await connect(database_url!)
    if (error === undefined) return
    const reason = explainDatabaseError(error, { database_url })
    const waited_ms = performance.now() - began
    if (!passes(error)) throw reason
    if (waited_ms >= wait_ms) throw afterWaiting(reason, database_wait_seconds)
    if (performance.now() - said >= say_ms) {
      said = performance.now()
      const message = reason instanceof Error ? reason.message : String(reason)
      log.warn(
        { waited_seconds: Math.round(waited_ms / 1000), wait_seconds: database_wait_seconds },
        `${message} The start waits for it`,
      )
    }
    await delay(Math.min(again_ms, wait_ms - waited_ms), undefined, { signal }).catch(() => {
      throw new Interrupted()
    })
  }
}

/** Connects once and gives why that failed. */
async function connect(connectionString: string): Promise<unknown> {
  const client = new pg.Client({
    connectionString,
    connectionTimeoutMillis: connect_ms,
    application_name: 'cadre start',
  })
  client.on('error', () => {})
  try {
    await client.connect()
    return undefined
  } catch (error) {
    return error
  } finally {
    await client.end().catch(() => {})
  }
}

function passes(error: unknown): boolean {
  const first: unknown = error instanceof AggregateError ? error.errors[0] : error
  if (!(first instanceof Error)) return false
  const code: unknown = 'code' in first ? first.code : undefined
  return typeof code === 'string' ? passing.test(code) : passingWithoutCode.test(first.message)
}

function afterWaiting(reason: unknown, seconds: number): unknown {
  if (!(reason instanceof CommandError) || seconds === 0) return reason
  const message = `${reason.message} It was waited for ${seconds} s, as CADRE_DATABASE_WAIT_SECONDS says.`
  return new CommandError(message, reason.cause)
}
