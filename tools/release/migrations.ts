import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { listMigrations } from '../../server/src/platform/postgres/migrate.ts'

/** Migrations of all releases by name, as databases in use have run them. `npm run release` adds those of a release. */
type Released = Record<string, { version: string; hash: string }>

const file = join(import.meta.dirname, '../../server/released-migrations.json')

export async function readReleased(): Promise<Released> {
  return JSON.parse(await readFile(file, 'utf8')) as Released
}

/** Freezes the migrations that no release has yet, as those of `version`; whether there were any. */
export async function freezeMigrations(version: string): Promise<boolean> {
  const released = await readReleased()
  const fresh = (await listMigrations()).filter(({ name }) => !(name in released))
  const all = { ...released, ...Object.fromEntries(fresh.map(({ name, hash }) => [name, { version, hash }])) }
  await writeFile(file, `${JSON.stringify(all, null, 2)}\n`)
  return fresh.length > 0
}

/** What is wrong with the migrations of a build, given those that were released before. */
export function faultsOfMigrations(
  released: Released,
  migrations: readonly { name: string; hash: string; version: number }[],
): string[] {
  const now = new Map(migrations.map((one) => [one.name, one]))
  const changed = Object.entries(released).flatMap(([name, { version, hash }]) => {
    const ours = now.get(name)
    if (ours?.hash === hash) return []
    return [
      `${name} was released with ${version} and is ${ours ? 'changed' : 'gone'}: databases that ran it would be refused. Restore it, and add a migration.`,
    ]
  })
  const last = Math.max(0, ...Object.keys(released).map((name) => Number(name.slice(0, 4))))
  const late = migrations
    .filter(({ name, version }) => !(name in released) && version <= last)
    .map(({ name }) => `${name} has a number from before the last release: give it one behind ${last}.`)
  return [...changed, ...late]
}
