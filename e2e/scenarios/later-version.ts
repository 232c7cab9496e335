import { existsSync } from 'node:fs'
import { cp, symlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { cadreScript } from '../process.ts'

const root = dirname(cadreScript)
const sources = ['contract', 'server/src', 'sdk', 'cli']
const compiled = ['dist/program', 'tools/package']
/** What `cadre.mjs` takes to run the service and its commands. */
const parts = [
  'cadre.mjs',
  'package.json',
  'server/migrations',
  ...(existsSync(join(root, 'server/src')) ? sources : compiled),
]

/** Makes a copy of the program below `folder` with one more migration of this name, as a later version has it, and gives where it is. */
export async function laterVersion(folder: string, name: string, sql: string): Promise<string> {
  const at = join(folder, name)
  // What links lead to is copied, so that the migration is not written into the checkout.
  for (const part of parts) await cp(join(root, part), join(at, part), { recursive: true, dereference: true })
  await symlink(join(root, 'node_modules'), join(at, 'node_modules'))
  await writeFile(join(at, 'server/migrations', name), sql)
  return at
}
