import pg from 'pg'
import { clientSql, connectionSettings, type DatabaseOptions, type Sql } from './database.ts'

/** A dedicated connection. */
export interface Connection {
  sql: Sql
  /** For COPY, which returns no rows. */
  client: pg.Client
  /** Closes it at once; PostgreSQL rolls back its transaction within a second. */
  close(): Promise<void>
}

const bounds = ['statement_timeout', 'lock_timeout', 'idle_in_transaction_session_timeout']

/**
 * Opens a connection for work of any duration, such as a backup: its statements, lock waits and transactions have no
 * timeouts.
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
  // PostgreSQL then aborts a statement whose client is gone. Not every system supports this.
  await client.query(`set client_connection_check_interval = '1s'`).catch(() => {})
  return { sql: clientSql(client), client, close: () => client.end() }
}
