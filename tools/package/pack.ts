import { copyFile, mkdir, readFile, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { buildConsoleIfStale, builtFolder } from '../console-build.mjs'
import { writeBuilt } from '../gen/gen-dist.ts'
import { bundleService, repository } from './bundle.ts'
import { packedFiles, packedManifest } from './manifest.ts'
import { evenModes } from './modes.ts'
import { filesOfConsole, thirdPartyNotices } from './notices.ts'

/**
 * `npm pack` in the repository runs this before it packs (`prepack`), and `restore.mjs` afterwards. The package has a separate manifest: its
 * code is compiled, and the packages that a checkout runs on are in it.
 */
const manifest = join(repository, 'package.json')
const kept = join(repository, 'dist/package.source.json')

if (!(await buildConsoleIfStale())) throw new Error('The console could not be built, so nothing is packed.')
await writeBuilt()
const packages = await bundleService(join(repository, 'dist/program'))
const ofConsole = await readFile(join(builtFolder, 'LICENSES.md'), 'utf8')
const noticed = new Set([...packages, ...filesOfConsole.map((name) => `node_modules/${name}`)])
await writeFile(join(repository, 'dist/THIRD-PARTY-NOTICES.txt'), await thirdPartyNotices(noticed, [ofConsole]))
const packed = `${JSON.stringify(await packedManifest(), null, 2)}\n`
await mkdir(join(repository, 'dist'), { recursive: true })
await copyFile(manifest, kept)
// Others may read it at any moment.
await writeFile(`${manifest}.packed`, packed)
await rename(`${manifest}.packed`, manifest)
await evenModes(repository, packedFiles)
