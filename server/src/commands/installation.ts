import type pg from 'pg'
import type { Logger } from 'pino'
import { readConfig, type Config } from '../config/config.ts'
import { type Database, openDatabase, type Sql } from '../platform/postgres/database.ts'
import { DataFolderInUse, openDataFolder } from '../platform/embedded-postgres/data-folder.ts'
import {
  type EmbeddedPostgresLog,
  findEmbeddedPostgres,
  hasEmbeddedPostgres,
  startEmbeddedPostgres,
} from '../platform/embedded-postgres/embedded-postgres.ts'
import { makeLog } from '../platform/log.ts'
import { migrationStatus } from '../platform/postgres/migrate.ts'
import { unlessAborted } from '../platform/abort-signals.ts'
import { type CommandContext, CommandError } from './command.ts'
import { explainDatabaseError } from './database-fault.ts'

/** The database of the configuration, for a command. */
export interface Installation {
  config: Config
  log: Logger
  database: Database
  sql: Sql
  /** For other connections to the database: a PostgreSQL URL, or settings of `pg` (a socket). */
  connection: string | pg.ClientConfig
  /**
   * The server: that of `DATABASE_URL`, the embedded one of a running service, or an embedded one only for this command,
   * whose lock on the data folder prevents a service from starting.
   */
  server: 'external' | 'of a running service' | 'of this command'
}

/** Requirements of a command. */
export interface Need {
  /** Throws `DataFolderInUse` if a service uses the embedded database. Not checked for `DATABASE_URL`. */
  alone?: boolean
  /** Makes an embedded database if there is none; otherwise that is a `CommandError`. */
  make?: boolean
  /** Whether the schema must be that of this build. */
  schema: 'current' | 'any'
}

/** How long to wait for the database of a starting service. */
const appearing_ms = 20_000
/** How long interrupted statements may take to release their connections. */
const closing_ms = 1000

/**
 * Opens the database of the configuration in `env`, embedded or not, whether or not a service runs; runs `work` and closes
 * the database. If `signal` aborts, it rejects with the signal's reason, and open transactions are rolled back.
 * @throws CommandError, ConfigError, DataFolderError, EmbeddedPostgresError, MigrationError
 */
export async function withInstallation<T>(
  { env, signal, note }: Pick<CommandContext, 'env' | 'signal' | 'note'>,
  need: Need,
  work: (installation: Installation) => Promise<T>,
): Promise<T> {
  const config = readConfig(env)
  for (const warning of config.warnings) note(warning)
  const log = makeLog(config.log_level, config.secrets)
  const { connection, server, release } = await reach(config, log, need, signal)
  const database = openDatabase({ connection, connectionsMax: 4, application_name: 'cadre command', onError: () => {} })
  try {
    const working = checkSchema(database.sql, need).then(() =>
      work({ config, log, database, sql: database.sql, connection, server }),
    )
    return await unlessAborted(working, signal)
  } catch (error) {
    throw explainDatabaseError(error, config)
  } finally {
    const closed = database.close().catch(() => {})
    if (signal.aborted) await Promise.race([closed, after(closing_ms)])
    else await closed
    await release()
  }
}

/** Logs the database's information at the level debug, to keep it out of the operator's terminal. */
export function quiet(log: Logger): EmbeddedPostgresLog {
  return {
    info: (details, message) => log.debug(details, message),
    error: (details, message) => log.error(details, message),
  }
}

type Reached = Pick<Installation, 'connection' | 'server'> & { release(): Promise<void> }

async function reach(config: Config, log: Logger, need: Need, signal: AbortSignal): Promise<Reached> {
  const { database_url, data_dir } = config
  if (database_url !== undefined) return { connection: database_url, server: 'external', release: async () => {} }
  if (!need.make && !(await hasEmbeddedPostgres(data_dir))) {
    throw new CommandError(
      `There is no database in ${data_dir}. Run \`cadre serve\` to create one, or set CADRE_DATA_DIR or DATABASE_URL.`,
    )
  }
  try {
    const folder = await openDataFolder(data_dir)
    try {
      const postgres = await startEmbeddedPostgres({ data_dir, log: quiet(log), signal })
      const release = async (): Promise<void> => {
        await postgres.stop()
        await folder.close()
      }
      return { connection: postgres.connection, server: 'of this command', release }
    } catch (error) {
      await folder.close()
      throw error
    }
  } catch (error) {
    if (!(error instanceof DataFolderInUse) || need.alone) throw error
    const connection = await appearing(data_dir, signal)
    if (connection) return { connection, server: 'of a running service', release: async () => {} }
    throw new CommandError(
      `${error.message.split('. ')[0]}, and its database does not accept connections. Try again once it is ready.`,
      error,
    )
  }
}

/** Waits for the server of the process that has locked the folder, which may still be starting. */
async function appearing(data_dir: string, signal: AbortSignal): Promise<pg.ClientConfig | undefined> {
  const end_ms = performance.now() + appearing_ms
  for (;;) {
    signal.throwIfAborted()
    const connection = await findEmbeddedPostgres(data_dir)
    if (connection || performance.now() > end_ms) return connection
    await after(100)
  }
}

async function checkSchema(sql: Sql, { schema }: Need): Promise<void> {
  if (schema === 'any') return
  const { pending } = await migrationStatus(sql)
  if (pending.length === 0) return
  throw new CommandError(
    `The database lacks ${pending.length === 1 ? 'a migration' : `${pending.length} migrations`} of this version. Run \`cadre migrate\`.`,
  )
}

function after(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}
