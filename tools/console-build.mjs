// Whether the console must be built, and the building of it. Plain JavaScript that any Node since 20 understands, because
// `npm start` asks before it knows which Node it will run on.
import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
export const builtFolder = join(root, 'console/dist')
/** Beside the build: the hash of what it was made of. */
export const stampName = 'built-from'

/** A hash of everything that the console is made of; some ten milliseconds. */
export function sourceStamp() {
  const hash = createHash('sha256')
  for (const folder of ['console', 'sdk/src', 'contract/src'])
    for (const file of filesIn(folder))
      hash
        .update(file)
        .update('\0')
        .update(readFileSync(join(root, file)))
  for (const file of ['package-lock.json', 'tools/build-console.ts']) hash.update(readFileSync(join(root, file)))
  return hash.digest('hex')
}

/** @param {string} folder @returns {string[]} */
function filesIn(folder) {
  if (!existsSync(join(root, folder))) return []
  return readdirSync(join(root, folder), { withFileTypes: true })
    .toSorted((a, b) => (a.name < b.name ? -1 : 1))
    .flatMap((entry) => {
      const path = `${folder}/${entry.name}`
      if (entry.isDirectory()) return /^(dist|node_modules|[.].*)$/.test(entry.name) ? [] : filesIn(path)
      return /[.]test[.]tsx?$/.test(entry.name) ? [] : [path]
    })
}

/** Whether a build is due and can be made: its packages are left out by `npm ci --omit=dev`. */
export function isConsoleStale() {
  const canBuild = existsSync(join(root, 'console/index.html')) && existsSync(join(root, 'node_modules/vite'))
  if (!canBuild) return false
  const stamp = join(builtFolder, stampName)
  return !existsSync(stamp) || readFileSync(stamp, 'utf8') !== sourceStamp()
}

/**
 * Builds the console in a process beside this one, where that is due; resolves with whether it is there afterwards. What the
 * build says is shown only where it fails.
 * @returns {Promise<boolean>}
 */
export async function buildConsoleIfStale() {
  if (!isConsoleStale()) return existsSync(join(builtFolder, 'index.html'))
  const child = spawn(process.execPath, [join(root, 'tools/run.mjs'), join(root, 'tools/build-console.ts')], {
    cwd: root,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let said = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (said += chunk))
  return new Promise((resolve) => {
    child.on('error', () => resolve(false))
    child.on('exit', (code) => {
      if (code !== 0) console.error(`The console could not be built; everything else works.\n${said}`)
      resolve(code === 0)
    })
  })
}
