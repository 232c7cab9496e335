import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type pg from 'pg'
import { pino } from 'pino'
import { startEmbeddedPostgres } from '../src/platform/embedded-postgres/embedded-postgres.ts'

/** The variable with the connection of a run's PostgreSQL, for the processes that run its tests. */
export const testServerVariable = 'CADRE_TEST_POSTGRES'

/** The URL of a connection by a socket, as `DATABASE_URL`. */
export function databaseUrl({ host, port = 5432, user, database }: pg.ClientConfig): string {
  return `postgres://${user}@localhost:${port}/${database}?host=${encodeURIComponent(String(host))}`
}

/** A PostgreSQL server on which tests create databases. */
export interface TestServer {
  connection: pg.ClientConfig
  /** Stops it if this process started it and this was its last user. */
  release(): Promise<void>
}

/**
 * Durability is off, because it costs time and is not tested here: a test that kills PostgreSQL starts another server.
 */
const settings = {
  fsync: 'off',
  synchronous_commit: 'off',
  full_page_writes: 'off',
  max_connections: '400',
  autovacuum: 'off',
}

/** Starts a server in a new folder. */
export async function startTestServer(): Promise<{ connection: pg.ClientConfig; stop(): Promise<void> }> {
  const folder = await mkdtemp(join(tmpdir(), 'cadre-test-'))
  const server = await startEmbeddedPostgres({ data_dir: folder, log: pino({ level: 'silent' }), settings })
  return {
    connection: server.connection,
    async stop() {
      await server.stop()
      await rm(folder, { recursive: true, force: true })
    },
  }
}

let own: { server: Promise<Awaited<ReturnType<typeof startTestServer>>>; users: number } | undefined

/** The server of the test run. A file that runs alone starts one, which stops with its last user. */
export async function testServer(): Promise<TestServer> {
  const given = process.env[testServerVariable]
  if (given) return { connection: JSON.parse(given), release: async () => {} }
  own ??= { server: startTestServer(), users: 0 }
  const mine = own
  mine.users += 1
  const { connection, stop } = await mine.server
  return {
    connection,
    async release() {
      mine.users -= 1
      if (mine.users > 0) return
      if (own === mine) own = undefined
      await stop()
    },
  }
}
