import type { Logger } from 'pino'
import { ConfigError, readConfig, type Config } from './config.ts'
import { openDataFolder, DataFolderError, type DataFolder } from './platform/data-folder.ts'
import { startEmbeddedPostgres, type EmbeddedPostgres, type EmbeddedPostgresLog } from './platform/embedded-postgres.ts'
import { EmbeddedPostgresError } from './platform/embedded-postgres-error.ts'
import { makeLog } from './platform/log.ts'
import type { FirstOwner } from './first-start.ts'
import type { Service } from './service.ts'

/** A stop that takes longer is cut off: tasks are durable, whatever was in flight goes on at the next start. */
const stopTimeout_ms = 30_000

/** What a fault of the operator ends with: one message, no stack trace. */
class StartError extends Error {}

try {
  await main()
} catch (error) {
  const known =
    error instanceof ConfigError ||
    error instanceof DataFolderError ||
    error instanceof EmbeddedPostgresError ||
    error instanceof StartError
  process.stderr.write(
    known
      ? `${error.message}\n`
      : `Cadre could not start: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`,
  )
  process.exit(1)
}

async function main(): Promise<void> {
  const config = readConfig(process.env)
  const log = makeLog(config.log_level)
  for (const warning of config.warnings) log.warn(warning)

  const stop = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    // A second signal does not wait any longer.
    process.on(signal, () => (stop.signal.aborted ? process.exit(130) : stop.abort()))
  }
  const folder =
    config.database_url && config.secret_key
      ? undefined
      : await openDataFolder(config.data_dir, { exclusive: !config.database_url })
  let postgres: EmbeddedPostgres | undefined
  let service: Service | undefined
  let credentials_file: string | undefined
  let owner: FirstOwner | undefined
  const end = async (): Promise<void> => {
    await service?.stop()
    await postgres?.stop()
    await folder?.close()
  }
  try {
    // The database starts in its own process while this one reads the rest of the program.
    const starting = config.database_url
      ? undefined
      : startEmbeddedPostgres({ data_dir: config.data_dir, log: quiet(log), signal: stop.signal })
    const [{ startService }, { welcome }, started] = await Promise.all([
      import('./service.ts'),
      import('./welcome.ts'),
      starting,
    ])
    postgres = started
    service = await startService({
      config,
      secret_key: config.secret_key ?? (await requireFolder(folder).secretKey()),
      connection: config.database_url ?? started!.connection,
      log,
      keepCredentials: async (made) => {
        owner = made
        if (config.database_url) return
        const kept = Object.entries(made).filter(([name]) => made.generated.includes(name))
        credentials_file = await requireFolder(folder).writeCredentials(Object.fromEntries(kept))
      },
    })
    process.stdout.write(welcome(service, credentials_file, startedAfter_ms()))
    if (!stop.signal.aborted)
      await new Promise<void>((resolve) => stop.signal.addEventListener('abort', () => resolve()))
    process.stdout.write('Stopping.\n')
  } catch (error) {
    // The owner is in the database already, and no later start will say this again.
    if (!service && owner) await showGenerated(owner, credentials_file)
    await end()
    throw listenFault(error, config)
  }
  setTimeout(() => process.exit(1), stopTimeout_ms).unref()
  await end()
  process.exit(0)
}

/** What the first start generated, where that start comes to nothing. */
async function showGenerated(owner: FirstOwner, credentials_file: string | undefined): Promise<void> {
  const { generatedLines } = await import('./welcome.ts')
  const lines = generatedLines(owner, credentials_file)
  if (lines.length > 0) process.stdout.write(`${['', ...lines].join('\n')}\n`)
}

/** What goes as it should is for those who look for it; the first screen belongs to the newcomer. */
function quiet(log: Logger): EmbeddedPostgresLog {
  return {
    info: (details, message) => log.debug(details, message),
    error: (details, message) => log.error(details, message),
  }
}

function requireFolder(folder: DataFolder | undefined): DataFolder {
  if (!folder) throw new StartError('the data folder is needed and was not opened')
  return folder
}

/** Milliseconds since this process began. */
function startedAfter_ms(): number {
  return Math.round(performance.now())
}

function listenFault(error: unknown, { host, port }: Config): unknown {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  if (code === 'EADDRINUSE')
    return new StartError(`Port ${port} on ${host} is in use. Set PORT to another one, or 0 for any that is free.`)
  if (code === 'EADDRNOTAVAIL')
    return new StartError(`This machine does not have the address ${host}. Set HOST to one that it has.`)
  if (code === 'EACCES') return new StartError(`Port ${port} may not be used by this user. Set PORT to one from 1024.`)
  return error
}
