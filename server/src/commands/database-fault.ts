import type { Config } from '../config/config.ts'
import { CommandError } from './command.ts'

/** Codes of errors of a connection: of the system, of TLS, and SQLSTATEs of PostgreSQL. */
const refusals =
  /^(ECONN|ENOTFOUND|ETIMEDOUT|EHOST|ENETUNREACH|EAI_|EPIPE|ENOENT$|08|28|3D000|53300|57P0|SELF_SIGNED|DEPTH_ZERO|UNABLE_TO|CERT_|ERR_TLS)/
/** Messages of `pg`'s errors without a code. */
const codeless = /timeout|terminated|does not support SSL|SASL|SCRAM/i

/**
 * Turns an error of a connection into a `CommandError` for the operator, without the password of `DATABASE_URL`; returns
 * any other error unchanged.
 */
export function explainDatabaseError(error: unknown, { database_url }: Pick<Config, 'database_url'>): unknown {
  // A name with several addresses fails once for each of them.
  const first: unknown = error instanceof AggregateError ? error.errors[0] : error
  if (!(first instanceof Error) || ('syscall' in first && first.syscall === 'listen')) return error
  const code = 'code' in first ? String(first.code) : undefined
  const isRefusal = code === undefined ? isOfDriver(first) && codeless.test(first.message) : refusals.test(code)
  if (!isRefusal) return error
  const which = database_url === undefined ? 'The embedded database' : 'The database of DATABASE_URL'
  return new CommandError(`${which} cannot be reached: ${first.message}.`, error)
}

function isOfDriver({ stack }: Error): boolean {
  return stack !== undefined && /node_modules[/\\]pg(-pool)?[/\\]/.test(stack)
}
