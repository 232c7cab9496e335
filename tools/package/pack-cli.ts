import { chmod, copyFile, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { bundleCli, repository } from './bundle.ts'
import { evenModes } from './modes.ts'
import { thirdPartyNotices } from './notices.ts'

/** `npm pack` in `cli/package` runs this: it makes all that the package of the command line has. */
const folder = join(repository, 'cli/package')
const out = join(folder, 'dist')
const { version } = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8')) as { version: string }
const packages = await bundleCli(out)
await writeFile(join(out, 'THIRD-PARTY-NOTICES.txt'), await thirdPartyNotices(packages))
await copyFile(join(repository, 'cli/AGENTS.md'), join(out, 'AGENTS.md'))
const start = join(out, 'cadre.js')
await writeFile(start, startOf(version))
await chmod(start, 0o755)
await evenModes(folder, ['dist'])

/** Starts the command line: the version is said without loading it, and compiled code is kept by a Node that can (from 22.1). */
function startOf(version: string): string {
  return `#!/usr/bin/env node
import module from 'node:module'
import { homedir } from 'node:os'
import { join } from 'node:path'

const version = '${version}'
if (process.argv.length === 3 && ['--version', '-V'].includes(process.argv[2])) console.log(version)
else {
  const caches = process.env.XDG_CACHE_HOME || join(homedir(), '.cache')
  module.enableCompileCache?.(process.env.NODE_COMPILE_CACHE || join(caches, 'cadre'))
  const { main } = await import('./cli.js')
  await main({ version })
}
`
}
