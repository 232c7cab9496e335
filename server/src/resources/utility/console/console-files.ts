import { existsSync } from 'node:fs'
import { readdir, readFile, stat } from 'node:fs/promises'
import { extname, join } from 'node:path'
import { root } from '../../../platform/root.ts'

/** Folder of the console's build; missing if it was not built. */
export const consoleFolder = join(root, 'console/dist')

/** Whether there is a console to serve. */
export function isConsoleBuilt(): boolean {
  return existsSync(join(consoleFolder, 'index.html'))
}

/** Types of the files that are served; other files of the folder are not. */
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

/** A file of the console, and its compressed forms. */
export interface ConsoleFile {
  type: string
  body: Buffer
  br?: Buffer
  gzip?: Buffer
}

/** The built console: its page, and its files by their path below the folder. */
export interface Console {
  page: string
  files: ReadonlyMap<string, ConsoleFile>
}

/**
 * Reads the built console into memory: some hundred files of a few hundred KB in all. Requests are served from this
 * map only, so no path can reach another file. It is read again when the page has changed, so a new build is served
 * without a restart.
 */
export function readConsole(folder: string): () => Promise<Console | undefined> {
  let read: { version: number; console: Promise<Console> } | undefined
  return async () => {
    const version = await stat(join(folder, 'index.html')).then(
      ({ mtimeMs }) => mtimeMs,
      () => undefined,
    )
    // While a new build replaces the old one the page is missing for a moment; the old one is served.
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
