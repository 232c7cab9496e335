import { createHash, randomBytes } from 'node:crypto'
import { constants } from 'node:fs'
import { chown, copyFile, mkdir, readdir, readFile, rename, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type pg from 'pg'
import { syncFolder } from './data-folder.ts'
import { startEmbeddedPostgres } from './embedded-postgres.ts'
import type { Account } from './account.ts'
import { clusterOptions, prepareCluster } from './cluster.ts'
import { listMigrations } from '../postgres/migrate.ts'
import { root } from '../root.ts'

/** Inside `node_modules`, so the next installation removes it. */
const templatesFolder = join(root, 'node_modules/.cache/cadre-cluster')

/** Settings that keep the write-ahead log small, because it is copied too. */
const small = { wal_level: 'minimal', max_wal_senders: '0', wal_recycle: 'off' }

/** Maximum age of a template: the schema makes partitions for 45 days ahead. */
const ageMax_ms = 30 * 86_400_000

/**
 * The name of this build's template: a hash of the options of `initdb`, the platform, the versions of all packages, and all
 * migrations. A template of another build has another name.
 */
async function templateName(): Promise<string> {
  const { dependencies } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8')) as { dependencies: object }
  const migrations = (await listMigrations()).map(({ name, hash }) => [name, hash])
  const madeOf = JSON.stringify([clusterOptions, process.platform, process.arch, dependencies, migrations])
  return createHash('sha256').update(madeOf).digest('hex').slice(0, 32)
}

/**
 * The folder of a cluster with this build's schema, which a first start may copy; undefined if the installation has made
 * none, or if it is too old.
 */
export async function findTemplate(folder = templatesFolder): Promise<string | undefined> {
  const template = join(folder, await templateName())
  const version = await stat(join(template, 'PG_VERSION')).catch(() => undefined)
  return version && Date.now() - version.mtimeMs < ageMax_ms ? template : undefined
}

/** Makes the template of this build, complete and synced, or not at all; `fill` makes the schema. Removes other templates. */
export async function makeTemplate(
  fill: (connection: pg.ClientConfig) => Promise<void>,
  folder = templatesFolder,
): Promise<void> {
  const name = await templateName()
  await rm(folder, { recursive: true, force: true })
  const work = join(folder, `making-${randomBytes(6).toString('hex')}`)
  await mkdir(work, { recursive: true })
  const postgres = await startEmbeddedPostgres({ data_dir: work, log: { info() {}, error() {} }, settings: small })
  try {
    await fill(postgres.connection)
  } finally {
    await postgres.stop()
  }
  const made = join(work, 'postgres')
  await rm(join(made, 'postmaster.opts'), { force: true })
  const template = join(folder, name)
  await rename(made, template)
  // A spare copy, which the first start of all moves instead of copying the template.
  await prepareCluster(work, (to, account) => copyTemplate(template, to, account))
  await rename(join(work, 'postgres'), spareOf(template))
  await syncFolder(folder)
  await rm(work, { recursive: true, force: true })
}

function spareOf(template: string): string {
  return `${template}-spare`
}

/**
 * Fills an empty folder for `account`: moves the spare copy of a template into it (`synced`), or copies the template
 * (`written`, so the caller must sync it). If it throws, the folder may have a partial copy.
 */
export async function copyTemplate(
  template: string,
  to: string,
  account: Account | undefined,
): Promise<'written' | 'synced'> {
  const spare = await stat(spareOf(template)).catch(() => undefined)
  if (spare?.uid === (account?.uid ?? process.getuid?.())) {
    // Fails across disks, and for the second of two processes.
    const isMoved = await rename(spareOf(template), to).then(
      () => true,
      () => false,
    )
    if (isMoved) return 'synced'
  }
  const entries = await readdir(template, { recursive: true, withFileTypes: true })
  const pathOf = ({ parentPath, name }: (typeof entries)[number]): string =>
    join(to, parentPath.slice(template.length), name)
  const own = async (path: string): Promise<void> => account && chown(path, account.uid, account.gid)
  // Parent folders come first.
  for (const entry of entries.filter((one) => one.isDirectory())) {
    await mkdir(pathOf(entry), { mode: 0o700 })
    await own(pathOf(entry))
  }
  await Promise.all(
    entries
      .filter((one) => one.isFile())
      .map(async (entry) => {
        await copyFile(join(entry.parentPath, entry.name), pathOf(entry), constants.COPYFILE_FICLONE)
        await own(pathOf(entry))
      }),
  )
  return 'written'
}
