import type pg from 'pg'
import type { Logger } from 'pino'
import type { Config } from '../config/config.ts'
import { type DataFolder, openDataFolder } from '../platform/embedded-postgres/data-folder.ts'
import { readDiskSpace, watchDisks } from '../platform/embedded-postgres/disk-space.ts'
import { findEmbeddedPostgres, startEmbeddedPostgres } from '../platform/embedded-postgres/embedded-postgres.ts'
import type { Account } from '../platform/embedded-postgres/account.ts'
import { copyTemplate, findTemplate } from '../platform/embedded-postgres/template.ts'
import { awaitDatabase } from './await-database.ts'
import { CommandError } from './command.ts'
import { quiet } from './installation.ts'

/** The resources that a process of the service needs: a database, the secret key, and the data folder. */
export interface Foundation {
  /** A PostgreSQL URL, or settings of `pg` (the embedded server's socket). */
  connection: string | pg.ClientConfig
  secret_key: string
  /** Stores the generated credentials and returns the file's path; with `DATABASE_URL` it stores none and returns undefined. */
  keepCredentials(values: Readonly<Record<string, unknown>>): Promise<string | undefined>
  /** Stops the embedded database and unlocks the data folder. */
  close(): Promise<void>
}

/** Maximum number of connections of one process, including those of its background jobs. */
const connectionsOfProcess = 38
/** Connections for PostgreSQL's reserve and an operator's commands. */
const connectionsOfOthers = 20

/**
 * Opens the data folder and starts the embedded database for the given number of processes. With `DATABASE_URL` it waits for
 * that database instead, and with `CADRE_SECRET_KEY` too it needs no folder. Aborted by `signal`.
 */
export async function layFoundation(
  config: Config,
  { log, signal, processes = 1 }: { log: Logger; signal: AbortSignal; processes?: number },
): Promise<Foundation> {
  const { database_url, data_dir } = config
  const folder = await openFolder(config, { exclusive: !database_url })
  if (database_url) {
    try {
      await awaitDatabase(config, { log, signal })
    } catch (error) {
      await folder?.close()
      throw error
    }
    return foundation(config, folder, database_url, async () => folder?.close())
  }
  const needed = processes * connectionsOfProcess + connectionsOfOthers
  // The default of 100 connections is enough for two processes; more cost memory.
  const settings = needed > 100 ? { settings: { max_connections: String(needed) } } : {}
  try {
    const postgres = await startEmbeddedPostgres({ data_dir, log: quiet(log), signal, copy: copyIfFound, ...settings })
    const unwatch = watchDisks(() => readDiskSpace(data_dir), log)
    return await foundation(config, folder, postgres.connection, async () => {
      unwatch()
      await postgres.stop()
      await folder?.close()
    })
  } catch (error) {
    await folder?.close()
    throw error
  }
}

async function copyIfFound(folder: string, account: Account | undefined): Promise<'written' | 'synced'> {
  const template = await findTemplate()
  if (!template) throw new Error('the installation has no prepared cluster')
  return copyTemplate(template, folder, account)
}

/** Like `layFoundation`, for a process whose supervisor has locked the folder and runs the embedded database. */
export async function shareFoundation(config: Config): Promise<Foundation> {
  const connection = config.database_url ?? (await findEmbeddedPostgres(config.data_dir))
  if (!connection) throw new CommandError('The embedded database cannot be reached.')
  return foundation(config, await openFolder(config, { exclusive: false }), connection, async () => {})
}

async function openFolder(
  { database_url, secret_key, data_dir }: Config,
  { exclusive }: { exclusive: boolean },
): Promise<DataFolder | undefined> {
  return database_url && secret_key ? undefined : openDataFolder(data_dir, { exclusive })
}

async function foundation(
  config: Config,
  folder: DataFolder | undefined,
  connection: Foundation['connection'],
  close: () => Promise<void>,
): Promise<Foundation> {
  return {
    connection,
    secret_key: config.secret_key ?? (await requireFolder(folder).secretKey()),
    keepCredentials: async (values) =>
      config.database_url ? undefined : requireFolder(folder).writeCredentials(values),
    close,
  }
}

function requireFolder(folder: DataFolder | undefined): DataFolder {
  if (!folder) throw new Error('the data folder is needed and was not opened')
  return folder
}
