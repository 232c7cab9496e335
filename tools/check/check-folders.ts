import { readdir } from 'node:fs/promises'
import { join } from 'node:path'

const repository = join(import.meta.dirname, '../..')
const roots = ['contract', 'server', 'sdk', 'sdk-python', 'cli', 'console', 'e2e', 'bench', 'tools']

/** Files and folders in one folder, tests included: what fits on a screen can be read in an order. */
const entriesMax = 25

/** Folders that may have more, with the reason. */
const exempt: Record<string, string> = {
  'server/migrations': 'One file for each migration, never edited and never moved.',
}

/** Not sources: packages, and what the build writes. */
const notSource = /^(node_modules|dist|coverage|__pycache__|_generated|[.]build-.*)$/

const errors = (await Promise.all(roots.map((root) => crowded(root)))).flat()
if (errors.length > 0) {
  console.error(errors.join('\n'))
  process.exitCode = 1
}

/** The folders at and below one with more than `entriesMax` entries. */
async function crowded(folder: string): Promise<string[]> {
  const entries = (await readdir(join(repository, folder), { withFileTypes: true })).filter(
    ({ name }) => !notSource.test(name),
  )
  const below = entries.filter((entry) => entry.isDirectory()).map(({ name }) => crowded(`${folder}/${name}`))
  const own =
    entries.length > entriesMax && !(folder in exempt)
      ? [`${folder} has ${entries.length} entries; at most ${entriesMax} are allowed. Group its files in folders.`]
      : []
  return [...own, ...(await Promise.all(below)).flat()]
}
