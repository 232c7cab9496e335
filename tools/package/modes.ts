import { chmod, lstat, readdir } from 'node:fs/promises'
import { join } from 'node:path'

/** npm packs these of every folder. */
const always = ['package.json', 'README.md', 'LICENSE']

/**
 * Gives files and folders that npm packs the modes that they have with the usual umask: npm packs what it finds, and what the umask of a
 * checkout took from a file is no part of its commit.
 */
export async function evenModes(folder: string, names: readonly string[]): Promise<void> {
  for (const name of [...always, ...names]) await evenMode(join(folder, name))
}

async function evenMode(path: string): Promise<void> {
  const found = await lstat(path).catch(() => undefined)
  if (found?.isFile()) await chmod(path, (found.mode & 0o100) === 0 ? 0o644 : 0o755)
  if (!found?.isDirectory()) return
  await chmod(path, 0o755)
  for (const name of await readdir(path)) await evenMode(join(path, name))
}
