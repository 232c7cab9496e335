import { existsSync } from 'node:fs'
import { readdir, readFile, stat } from 'node:fs/promises'
import { extname, join } from 'node:path'
import { root } from '../../../platform/root.ts'

/** Where the build of the console puts its files; not there where it was not built. */
export const consoleFolder = join(root, 'console/dist')

/** Whether there is a console to serve. */
export function isConsoleBuilt(): boolean {
  return existsSync(join(consoleFolder, 'index.html'))
}

/** Everything that the build may leave to be served; other files of the folder are not. */
const types: Record<string, string> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.json': 'application/json; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.ico': 'image/x-icon',
  '.woff2': 'font/woff2',
  '.webmanifest': 'application/manifest+json',
}

/** A file of the console, and what the build compressed it to. */
export interface ConsoleFile {
  type: string
  body: Buffer
  br?: Buffer
  gzip?: Buffer
}

/** The console as it was built: its page, and its files by their path below the folder. */
export interface Console {
  page: string
  files: ReadonlyMap<string, ConsoleFile>
}

/**
 * The built console, held in memory: some hundred files of a few hundred KB in all, and a name that is not in the map names
 * nothing, whatever it is made of. Read again when the page has changed, so a build is served without a restart.
 */
export function readConsole(folder: string): () => Promise<Console | undefined> {
  let read: { version: number; console: Promise<Console> } | undefined
  return async () => {
    const version = await stat(join(folder, 'index.html')).then(
      ({ mtimeMs }) => mtimeMs,
      () => undefined,
    )
    // While a build takes the place of another there is no page for a moment: the old one will do.
    if (version === undefined) return read?.console
    if (read?.version !== version) {
      const console = readFolder(folder)
      read = { version, console }
      console.catch(() => (read = undefined))
    }
    return read.console
  }
}

async function readFolder(folder: string): Promise<Console> {
  const names = (await readdir(folder, { recursive: true, withFileTypes: true }))
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length).replaceAll('\\', '/').replace(/^\//, ''))
  const files = new Map<string, ConsoleFile>()
  for (const name of names) {
    const type = types[extname(name)]
    if (type === undefined || name === 'index.html') continue
    const variant = (ending: string): Promise<Buffer | undefined> | undefined =>
      names.includes(name + ending) ? readFile(join(folder, name + ending)) : undefined
    files.set(name, {
      type,
      body: await readFile(join(folder, name)),
      br: await variant('.br'),
      gzip: await variant('.gz'),
    })
  }
  return { page: await readFile(join(folder, 'index.html'), 'utf8'), files }
}
