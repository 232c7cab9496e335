import { chmod, mkdtemp, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { brotliCompress, constants, gzip } from 'node:zlib'
import { build } from 'vite'
import { builtFolder, sourceStamp, stampName } from './console-build.mjs'

/** The licences of the packages in the console, beside it; the package of Cadre has them. */
const licenses = 'LICENSES.md'

/** Smaller files gain nothing by being compressed. */
const compressedFrom_bytes = 1024

/**
 * `npm run build`: the console in `console/dist`, with what servers send compressed beside it. It is made in a folder of its
 * own and takes the place of the old one when it is whole, so a build that fails or is killed leaves what was there.
 */
const started_ms = performance.now()
const folder = join(import.meta.dirname, '../console')
const stamp = sourceStamp()
const made = await mkdtemp(join(folder, '.build-'))
try {
  await build({
    root: folder,
    configFile: join(folder, 'vite.config.ts'),
    logLevel: 'warn',
    build: { outDir: made, emptyOutDir: true, license: { fileName: licenses } },
  })
  // A folder of mkdtemp belongs to its creator alone, and a service may run as another account.
  await chmod(made, 0o755)
  const sizes = await compress(made)
  await writeFile(join(made, stampName), stamp)
  await takePlace(made)
  const { files, bytes, br } = sizes
  console.log(
    `The console is built: ${files} files, ${kilobytes(bytes)}, ${kilobytes(br)} by Brotli, in ${Math.round(performance.now() - started_ms)} ms.`,
  )
} finally {
  await rm(made, { recursive: true, force: true })
}

async function compress(folder: string): Promise<{ files: number; bytes: number; br: number }> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true })
  const files = entries.filter((entry) => entry.isFile() && /[.](js|css|svg|json)$/.test(entry.name))
  const sizes = await Promise.all(
    files.map(async ({ parentPath, name }) => {
      const path = join(parentPath, name)
      const body = await readFile(path)
      if (body.length < compressedFrom_bytes) return { bytes: body.length, br: body.length }
      const params = { [constants.BROTLI_PARAM_SIZE_HINT]: body.length, [constants.BROTLI_PARAM_QUALITY]: 10 }
      const [br, gz] = await Promise.all([
        promisify(brotliCompress)(body, { params }),
        promisify(gzip)(body, { level: 9 }),
      ])
      await Promise.all([writeFile(`${path}.br`, br), writeFile(`${path}.gz`, gz)])
      return { bytes: body.length, br: br.length }
    }),
  )
  const sum = (of: 'bytes' | 'br'): number => sizes.reduce((total, size) => total + size[of], 0)
  return { files: files.length, bytes: sum('bytes'), br: sum('br') }
}

/** Another build may run at the same time: the last one wins, and none fails. */
async function takePlace(made: string): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    const old = `${made}-old`
    await rename(builtFolder, old).catch(() => {})
    try {
      await rename(made, builtFolder)
      return
    } catch (error) {
      if (attempt === 5) throw error
    } finally {
      await rm(old, { recursive: true, force: true })
    }
  }
}

function kilobytes(bytes: number): string {
  return `${Math.round(bytes / 1000)} KB`
}
