import { commands } from './commands/commands.ts'
import { CommandError, UsageError } from './commands/command.ts'
import { dispatch } from './commands/dispatch.ts'
import { Interrupted, isInterrupted } from './commands/interrupted.ts'
import { ConfigError } from './config/config.ts'
import { DataFolderError } from './platform/embedded-postgres/data-folder.ts'
import { MetricsPortError } from './metrics/metrics-port-error.ts'
import { EmbeddedPostgresError } from './platform/embedded-postgres/error.ts'
import { MigrationError } from './platform/postgres/migrate.ts'

/** What the operator can mend: told in one message, without a stack trace. */
const mendable = [CommandError, ConfigError, DataFolderError, EmbeddedPostgresError, MetricsPortError, MigrationError]

/** The reader of the output may stop reading, as `head` does. */
process.stdout.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? 0 : 1))

const code = await run(process.argv.slice(2))
await new Promise((resolve) => process.stdout.write('', resolve))
process.exit(code)

async function run(words: readonly string[]): Promise<number> {
  const stop = new AbortController()
  try {
    return await dispatch(words, commands, {
      env: process.env,
      print: (text) => void process.stdout.write(`${text}\n`),
      note,
      listen() {
        for (const signal of ['SIGINT', 'SIGTERM'] as const) {
          // A second signal does not wait any longer.
          process.on(signal, () => (stop.signal.aborted ? process.exit(130) : stop.abort(new Interrupted())))
        }
        return stop.signal
      },
    })
  } catch (error) {
    if (isInterrupted(error)) return 130
    if (error instanceof UsageError) {
      note(error.message)
      return 2
    }
    const known = error instanceof Error && mendable.some((kind) => error instanceof kind)
    note(
      known
        ? error.message
        : `Cadre failed: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`,
    )
    return 1
  }
}

function note(text: string): void {
  process.stderr.write(`${text}\n`)
}
