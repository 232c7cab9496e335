import { chmod, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { bundleCli, repository } from './bundle.ts'
import { thirdPartyNotices } from './notices.ts'

/** `npm pack` in `cli/package` runs this: it makes all that the package of the command line has. */
const folder = join(repository, 'cli/package')
const out = join(folder, 'dist')
const { version } = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8')) as { version: string }
const packages = await bundleCli(out)
await writeFile(join(out, 'THIRD-PARTY-NOTICES.txt'), await thirdPartyNotices(packages))
const start = join(out, 'cadre.js')
await writeFile(
  start,
  `#!/usr/bin/env node\nimport { main } from './cli.js'\n\nawait main({ version: '${version}' })\n`,
)
await chmod(start, 0o755)
