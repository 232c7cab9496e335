import assert from 'node:assert/strict'
import { join } from 'node:path'
import pg from 'pg'
import { makeEmptyDatabase } from '../../server/test/backups.ts'
import { databaseEnvironment, runCommand, temporaryFolder } from '../process.ts'

export const api_key = 'cadre_00112233445566778899aabbccddeeff'
/** A key that none of the installations makes for itself. */
export const otherKey = 'another secret key, of 32 characters'

const owner = { CADRE_ADMIN_API_KEY: api_key, CADRE_ADMIN_EMAIL: 'owner@example.com' }

/** Installations of a test, embedded and not, as the environment of commands. */
export interface Installations {
  folder: string
  /** With the database in a folder of this name, which is not there yet. */
  embedded(name: string): Record<string, string>
  /** With an empty database on a PostgreSQL, and a connection to it. */
  external(): Promise<{ env: Record<string, string>; client: pg.Client }>
  close(): Promise<void>
}

export async function makeInstallations(): Promise<Installations> {
  const { path: folder, remove } = await temporaryFolder()
  const closing = [remove]
  return {
    folder,
    embedded: (name) => ({ ...owner, CADRE_DATA_DIR: join(folder, name) }),
    async external() {
      const made = await makeEmptyDatabase()
      const client = new pg.Client(made.connection)
      client.on('error', () => {})
      await client.connect()
      closing.push(made.drop, () => client.end())
      const { DATABASE_URL } = databaseEnvironment(made.connection)
      return { env: { ...owner, DATABASE_URL: DATABASE_URL!, CADRE_DATA_DIR: join(folder, 'external') }, client }
    },
    async close() {
      for (const close of closing.reverse()) await close()
    },
  }
}

/** Runs a command that must succeed. */
export async function succeed(
  env: Record<string, string>,
  args: readonly string[],
): Promise<{ stdout: string; stderr: string }> {
  const { code, ...said } = await runCommand(env, args)
  assert.equal(code, 0, `${args.join(' ')}: ${said.stderr}`)
  return said
}

/** Runs a command that must fail with a sentence of this kind, and nothing else. */
export async function refuse(env: Record<string, string>, args: readonly string[], expected: RegExp): Promise<void> {
  const { code, stdout, stderr } = await runCommand(env, args)
  assert.deepEqual([code, stdout], [1, ''], args.join(' '))
  assert.match(stderr, expected)
  assert.doesNotMatch(stderr, /\n {4}at /, 'no stack trace')
}
