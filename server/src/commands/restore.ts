import { readArchive, type ArchiveContent } from '../backup/archive-reader.ts'
import { BackupError } from '../backup/backup-error.ts'
import { dropSecrets, type DroppedSecrets } from '../backup/drop-secrets.ts'
import { filesOutside } from '../backup/files-outside.ts'
import { count, makeProgress } from '../backup/progress.ts'
import { prepareRehearsal } from '../backup/rehearse.ts'
import { requireEmpty, requireKnownMigrations, restore as restoreArchive } from '../backup/restore.ts'
import { chooseSecretKey } from '../backup/secret-key.ts'
import { type Config, readConfig } from '../config/config.ts'
import { openDataFolder } from '../platform/embedded-postgres/data-folder.ts'
import { makeSecrets } from '../platform/crypto/secrets.ts'
import { CommandError, defineCommand } from './command.ts'
import { withInstallation } from './installation.ts'
import { keyHere, keysHere } from './secret-keys.ts'

/** `cadre restore <file>`: loads a backup into an empty database. */
export const restore = defineCommand({
  description:
    'Verifies the whole file first, then loads it in one transaction into the database of DATABASE_URL, which must be empty, or ' +
    'into a new embedded database in CADRE_DATA_DIR. If it fails or is interrupted, the database stays empty. A backup of an ' +
    'older version is migrated to this version.\n' +
    'Needs the secret key of the service that made the backup: set CADRE_SECRET_KEY, or copy its secret.key into the data folder. ' +
    'A key that is in the backup is written to the data folder.\n' +
    'Tasks continue, as after a crash, when the service starts. Stop the old service first, or both services will run them.',
  examples: [
    'cadre restore cadre-backup-20261101T020000Z.tar.gz',
    'cadre restore --check cadre-backup-20261101T020000Z.tar.gz',
  ],
  arguments: [{ name: 'file', description: 'Backup file, written by `cadre backup`.' }],
  options: {
    check: { type: 'boolean', description: 'Only verify the file and print what it contains; needs no database.' },
    'without-secrets': {
      type: 'boolean',
      description:
        'For a lost key: delete the environment variables of agents and all credentials, disable webhooks, and pause triggers.',
    },
    rehearsal: {
      type: 'boolean',
      description:
        'For a drill while the service runs: pause all agents and schedules and disable all webhooks, so that nothing runs twice.',
    },
    quiet: { type: 'boolean', short: 'q', description: 'Print nothing except errors.' },
  },
  run: async ({ options, arguments: { file }, ...call }) => {
    const say = options.quiet ? (): void => {} : call.note
    const began_ms = performance.now()
    try {
      const content = await readArchive(file, { signal: call.signal, onPart: makeProgress('Checking', say) })
      await requireKnownMigrations(content)
      if (options.check) {
        call.print(described(content))
        return 0
      }
      const config = readConfig(call.env)
      const isDropping = options['without-secrets']
      const key = isDropping
        ? undefined
        : chooseSecretKey(content, await keysHere(config), `${config.data_dir}/secret.key`)
      let dropped: DroppedSecrets | undefined
      let outside: string | undefined
      const need = { alone: true, make: true, schema: 'any' } as const
      const { migrated, queued } = await withInstallation(call, need, async ({ connection, sql, log }) => {
        await requireEmpty(sql)
        // Stored before the data: after an interruption in between, the key exists for whatever was restored.
        if (key?.isNew) await keepKey(config, key.text)
        const secrets = isDropping ? makeSecrets(await anyKey(config)) : undefined
        const restored = await restoreArchive({
          file,
          content,
          connection,
          log,
          onProgress: makeProgress('Loading', say),
          async alter(tx) {
            if (secrets) dropped = await dropSecrets(tx, secrets)
            if (options.rehearsal) await prepareRehearsal(tx)
          },
          signal: call.signal,
        })
        outside = await filesOutside(sql)
        return restored
      })
      if (key?.isNew) call.note(`The secret key from the backup was written to ${config.data_dir}/secret.key.`)
      if (migrated.length > 0) say(`Migrated from the backup's version: ${migrated.join(', ')}.`)
      if (dropped) sayDropped(dropped, call.note)
      if (outside !== undefined)
        call.note(
          `${outside} Set CADRE_FILES_S3_BUCKET and its keys to that store, or to one with a restored copy of the bucket.`,
        )
      const rows = content.checksums.tables.reduce((sum, table) => sum + table.rows, 0)
      say(
        `Restored ${count(rows)} rows as of ${content.manifest.created_at} in ${((performance.now() - began_ms) / 1000).toFixed(1)} s. ` +
          (options.rehearsal
            ? 'For a rehearsal: agents and schedules are paused, webhooks disabled.'
            : `${count(queued)} tasks continue when the service starts.`),
      )
      return 0
    } catch (error) {
      throw error instanceof BackupError ? new CommandError(error.message, error) : error
    }
  },
})

async function keepKey({ data_dir }: Config, key: string): Promise<void> {
  const folder = await openDataFolder(data_dir, { exclusive: false })
  await folder.keepSecretKey(key)
}

/** The key that the service will start with; made if there is none. */
async function anyKey(config: Config): Promise<string> {
  const here = await keyHere(config)
  return here?.text ?? (await openDataFolder(config.data_dir, { exclusive: false })).secretKey()
}

function described({ manifest, secret_key, checksums }: ArchiveContent): string {
  const { created_at, cadre_version, postgresql_version, key_id, migrations } = manifest
  const [bytes, rows] = (['bytes', 'rows'] as const).map((of) =>
    checksums.tables.reduce((sum, table) => sum + table[of], 0),
  )
  return [
    `Complete backup of ${created_at}, by Cadre ${cadre_version} on PostgreSQL ${postgresql_version}`,
    `  Schema      ${migrations.at(-1)!.name}`,
    `  Data        ${count(rows!)} rows in ${checksums.tables.filter(({ rows: some }) => some > 0).length} tables, ${count(bytes!)} bytes`,
    `  Secret key  ${key_id ?? 'not created yet'}${secret_key === undefined ? ', not in the file' : ', in the file'}`,
  ].join('\n')
}

function sayDropped(
  { agents, credentials, model_providers, webhooks, triggers }: DroppedSecrets,
  note: (text: string) => void,
): void {
  const list = (what: string, of: readonly string[]): void => {
    if (of.length > 0) note(`${what}: ${of.join(', ')}`)
  }
  list('Agents without their environment variables', agents)
  list('Deleted credentials', credentials)
  list('Removed keys of model providers', model_providers)
  list('Webhooks disabled until their secret is rotated', webhooks)
  list('Triggers paused until they are rotated', triggers)
}
