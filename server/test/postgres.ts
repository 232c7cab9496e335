import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type pg from 'pg'
import { pino } from 'pino'
import { startEmbeddedPostgres } from '../src/platform/embedded-postgres/embedded-postgres.ts'

/** Where the one server of a whole test run is told to the processes that the test files run in. */
const variable = 'CADRE_TEST_POSTGRES'

/** A PostgreSQL that tests make databases on. */
export interface TestServer {
  connection: pg.ClientConfig
  /** Ends it, where this process started it and nobody uses it any more. */
  release(): Promise<void>
}

/** Durability costs time and proves nothing here: a test that kills PostgreSQL starts one of its own. */
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

/** The server of the run; a file that runs alone starts one, which ends with its last user. */
export async function testServer(): Promise<TestServer> {
  const told = process.env[variable]
  if (told) return { connection: JSON.parse(told), release: async () => {} }
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

let shared: Awaited<ReturnType<typeof startTestServer>> | undefined

/** Run once before all test files (`--test-global-setup`). */
export async function globalSetup(): Promise<void> {
  shared = await startTestServer()
  process.env[variable] = JSON.stringify(shared.connection)
}

/** Run once after all test files. */
export async function globalTeardown(): Promise<void> {
  await shared?.stop()
}
