import { existsSync } from 'node:fs'
import { cp, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

const root = new URL('../..', import.meta.url).pathname
/** What of a checkout `cadre.mjs` takes to run the service and its commands. */
const parts = ['cadre.mjs', 'package.json', 'contract', 'server/src', 'server/migrations', 'sdk', 'cli']

/** Makes a checkout below `folder` with one more migration of this name, as a later version has it, and gives where it is. */
export async function laterVersion(folder: string, name: string, sql: string): Promise<string> {
  const at = join(folder, name)
  for (const part of parts.filter((one) => existsSync(join(root, one))))
    await cp(join(root, part), join(at, part), { recursive: true })
  await symlink(join(root, 'node_modules'), join(at, 'node_modules'))
  await writeFile(join(at, 'server/migrations', name), sql)
  return at
}
