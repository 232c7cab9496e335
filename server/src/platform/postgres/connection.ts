import pg from 'pg'
import { clientSql, connectionSettings, type DatabaseOptions, type Sql } from './database.ts'

/** A connection of one's own, and its end. */
export interface Connection {
  sql: Sql
  /** For what gives no rows: COPY. */
  client: pg.Client
  /** Ends it at once, whatever is under way: PostgreSQL rolls back what was not committed, a second later at most. */
  close(): Promise<void>
}

const bounds = ['statement_timeout', 'lock_timeout', 'idle_in_transaction_session_timeout']

/**
 * Opens a connection for work that takes as long as it takes, such as a backup: its statements, its waits for locks and
 * its transactions have no bounds of time.
 */
export async function openConnection(
  options: Pick<DatabaseOptions, 'connection' | 'application_name'>,
): Promise<Connection> {
  const client = new pg.Client(
    connectionSettings(
      options,
      bounds.map((name) => `-c ${name}=0`),
    ),
  )
  // A connection that dies between two statements emits `error`; the next statement reports it.
  client.on('error', () => {})
  await client.connect()
  // A statement whose client has gone is ended by PostgreSQL, instead of when it is done; it cannot on every system.
  await client.query(`set client_connection_check_interval = '1s'`).catch(() => {})
  return { sql: clientSql(client), client, close: () => client.end() }
}
