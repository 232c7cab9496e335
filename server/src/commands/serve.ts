import { readConfig, type Config } from '../config.ts'
import type { FirstOwner } from '../first-start.ts'
import { openDataFolder, type DataFolder } from '../platform/data-folder.ts'
import { startEmbeddedPostgres, type EmbeddedPostgres } from '../platform/embedded-postgres.ts'
import { makeLog } from '../platform/log.ts'
import type { Service } from '../service.ts'
import { type Circumstances, CommandError, defineCommand } from './command.ts'
import { explainDatabaseFault } from './database-fault.ts'
import { quiet } from './installation.ts'
import { isInterrupted } from './interrupted.ts'

/** A stop that takes longer is cut off: tasks are durable, whatever was in flight goes on at the next start. */
const stopTimeout_ms = 30_000

/** `cadre serve`, and `npm start`: the service, until SIGINT or SIGTERM. */
export const serve = defineCommand({
  summary: 'Starts the service; `npm start` is the same',
  description:
    'Starts the service with its embedded database, or on the PostgreSQL of DATABASE_URL, and runs it until SIGINT or SIGTERM. ' +
    'Then it is not ready any more, answers the requests in flight, hands its tasks back and ends; a second signal ends it at once.\n' +
    'The database is migrated at the start. Where it has migrations that this version does not know, the service refuses to start.',
  arguments: [],
  options: {},
  run: runService,
})

async function runService({ env, signal, print }: Circumstances): Promise<number> {
  const config = readConfig(env)
  const log = makeLog(config.log_level, config.secrets)
  for (const warning of config.warnings) log.warn(warning)

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
      : startEmbeddedPostgres({ data_dir: config.data_dir, log: quiet(log), signal })
    const [{ startService }, { welcome }, started] = await Promise.all([
      import('../service.ts'),
      import('../welcome.ts'),
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
    print(welcome(service, credentials_file, startedAfter_ms()))
    if (!signal.aborted) await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()))
    print('Stopping.')
  } catch (error) {
    // The owner is in the database already, and no later start will say this again.
    if (!service && owner) await showGenerated(owner, credentials_file, print)
    await end()
    // A start that is called off is no fault.
    if (isInterrupted(error)) return 0
    throw listenFault(explainDatabaseFault(error, config), config)
  }
  setTimeout(() => process.exit(1), stopTimeout_ms).unref()
  await end()
  return 0
}

/** What the first start generated, where that start comes to nothing. */
async function showGenerated(
  owner: FirstOwner,
  credentials_file: string | undefined,
  print: Circumstances['print'],
): Promise<void> {
  const { generatedLines } = await import('../welcome.ts')
  const lines = generatedLines(owner, credentials_file)
  if (lines.length > 0) print(['', ...lines].join('\n'))
}

function requireFolder(folder: DataFolder | undefined): DataFolder {
  if (!folder) throw new Error('the data folder is needed and was not opened')
  return folder
}

/** Milliseconds since this process began. */
function startedAfter_ms(): number {
  return Math.round(performance.now())
}

function listenFault(error: unknown, { host, port }: Config): unknown {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  if (code === 'EADDRINUSE')
    return new CommandError(`Port ${port} on ${host} is in use. Set PORT to another one, or 0 for any that is free.`)
  if (code === 'EADDRNOTAVAIL')
    return new CommandError(`This machine does not have the address ${host}. Set HOST to one that it has.`)
  if (code === 'EACCES')
    return new CommandError(`Port ${port} may not be used by this user. Set PORT to one from 1024.`)
  return error
}
