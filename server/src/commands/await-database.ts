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
 * Transient errors: no answer yet, no name yet, or a server that starts, stops or has no connection left. A refused password
 * or a missing database needs an operator.
 */
const transient = /^(ECONN|ENOTFOUND|ETIMEDOUT|EHOST|ENETUNREACH|EAI_|EPIPE|ENOENT$|08|53300|57P)/
const transientWithoutCode = /timeout|terminated/i

/**
 * Waits until the database of `DATABASE_URL` accepts connections, at most `CADRE_DATABASE_WAIT_SECONDS`; logs a warning every
 * 5 s.
 * @throws CommandError after that time, or at once for an error that is not transient; `Interrupted` if `signal` aborts
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
    if (!isTransient(error)) throw reason
    if (waited_ms >= wait_ms) throw afterWaiting(reason, database_wait_seconds)
    if (performance.now() - said >= say_ms) {
      said = performance.now()
      const message = reason instanceof Error ? reason.message : String(reason)
      log.warn(
        { waited_seconds: Math.round(waited_ms / 1000), wait_seconds: database_wait_seconds },
        `${message} Retrying`,
      )
    }
    await delay(Math.min(again_ms, wait_ms - waited_ms), undefined, { signal }).catch(() => {
      throw new Interrupted()
    })
  }
}

/** Connects once; returns the error, or undefined. */
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

function isTransient(error: unknown): boolean {
  const first: unknown = error instanceof AggregateError ? error.errors[0] : error
  if (!(first instanceof Error)) return false
  const code: unknown = 'code' in first ? first.code : undefined
  return typeof code === 'string' ? transient.test(code) : transientWithoutCode.test(first.message)
}

function afterWaiting(reason: unknown, seconds: number): unknown {
  if (!(reason instanceof CommandError) || seconds === 0) return reason
  const message = `${reason.message} The start gave up after ${seconds} s (CADRE_DATABASE_WAIT_SECONDS).`
  return new CommandError(message, reason.cause)
}
