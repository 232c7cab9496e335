import { existsSync } from 'node:fs'
import { exitCodes } from '#contract/core/exit-codes.ts'
import { ConfigError } from '../config/config.ts'
import { MetricsPortError } from '../metrics/metrics-port-error.ts'
import { DataFolderError } from '../platform/embedded-postgres/data-folder.ts'
import { EmbeddedPostgresError } from '../platform/embedded-postgres/error.ts'
import { MigrationError } from '../platform/postgres/migrate.ts'
import { type Command, CommandError, type Parsed, UsageError } from './command.ts'
import { Interrupted, isInterrupted } from './interrupted.ts'

/** Errors that the operator can fix: printed without a stack trace. */
const expected = [CommandError, ConfigError, DataFolderError, EmbeddedPostgresError, MetricsPortError, MigrationError]

/**
 * Runs a command with the settings of the environment and of the file .env in the current folder, until `signal` aborts.
 * Prints errors, and returns the exit code.
 */
export async function runServerCommand(command: Command, parsed: Parsed, signal: AbortSignal): Promise<number> {
  if (existsSync('.env')) process.loadEnvFile('.env')
  const stop = new AbortController()
  const onAbort = (): void => stop.abort(new Interrupted())
  if (signal.aborted) onAbort()
  else signal.addEventListener('abort', onAbort, { once: true })
  try {
    return await command.run({
      ...parsed,
      env: process.env,
      signal: stop.signal,
      print: (text) => void process.stdout.write(`${text}\n`),
      note,
    })
  } catch (error) {
    if (isInterrupted(error)) return exitCodes.interrupted
    note(described(error))
    return error instanceof UsageError ? exitCodes.usage : exitCodes.failed
  }
}

function described(error: unknown): string {
  if (!(error instanceof Error)) return `Cadre failed: ${String(error)}`
  if (error instanceof UsageError || expected.some((kind) => error instanceof kind)) return error.message
  return `Cadre failed: ${error.stack ?? error.message}`
}

function note(text: string): void {
  process.stderr.write(`${text}\n`)
}
