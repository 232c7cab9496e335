import { stat } from 'node:fs/promises'
import { backUp } from '../backup/back-up.ts'
import { BackupError } from '../backup/backup-error.ts'
import { archiveFile, openOutputFile, standardOutput } from '../backup/output-file.ts'
import { count, makeProgress, megabytes } from '../backup/progress.ts'
import type { Config } from '../config/config.ts'
import { findSecretKey } from '../platform/embedded-postgres/data-folder.ts'
import { makeSecrets } from '../platform/crypto/secrets.ts'
import { version } from '../version.ts'
import { CommandError, defineCommand, UsageError } from './command.ts'
import { withInstallation } from './installation.ts'

/** `cadre backup`: everything that a restore needs, but for the key. */
export const backup = defineCommand({
  summary: 'Writes a backup of the database to a file',
  description:
    'Writes all data as it is at one moment, while the service runs: one file, compressed (tar, gzip), with checksums, that ' +
    '`cadre restore` loads into an empty database, embedded or not, of this version or a later one. The service stays available meanwhile.\n' +
    'The secret key is not in it: keep it elsewhere, it is the file secret.key of the data folder, or CADRE_SECRET_KEY. Without it ' +
    'environment variables of agents, credentials and secrets of webhooks cannot be read.\n' +
    'The file appears under its name when it is whole. Its mode is 0600.',
  arguments: [],
  options: {
    output: {
      type: 'string',
      short: 'o',
      value: 'file',
      description:
        'Where to; in a folder, and by default in this one, cadre-backup-<time>.tar.gz; `-` is standard output.',
    },
    force: { type: 'boolean', description: 'Replaces a file that is there.' },
    'include-secret-key': {
      type: 'boolean',
      description: 'Puts the secret key into the file: its holder can read every secret.',
    },
    quiet: { type: 'boolean', short: 'q', description: 'Says nothing unless something is wrong.' },
  },
  run: async ({ options, ...call }) => {
    const say = options.quiet ? (): void => {} : call.note
    const isStream = options.output === '-'
    if (isStream && process.stdout.isTTY)
      throw new UsageError(
        'A terminal is no place for an archive. Redirect standard output, or name a file by --output.',
      )
    const began_ms = performance.now()
    const file = isStream ? undefined : await archiveFile(options.output, new Date())
    try {
      return await withInstallation(call, { schema: 'any' }, async ({ connection, config }) => {
        const secret_key = options['include-secret-key'] ? await findKey(config) : undefined
        const output = file === undefined ? standardOutput() : await openOutputFile(file, options)
        try {
          const { manifest, tables } = await backUp({
            connection,
            output: output.stream,
            cadre_version: version,
            secret_key,
            onProgress: makeProgress('Saving', say),
            signal: call.signal,
          })
          await output.keep()
          const rows = tables.reduce((sum, table) => sum + table.rows, 0)
          const size = file === undefined ? '' : `, ${megabytes((await stat(file)).size)}`
          say(
            `Saved ${count(rows)} rows as of ${manifest.created_at} in ${((performance.now() - began_ms) / 1000).toFixed(1)} s${size}.`,
          )
          if (secret_key) call.note('The secret key is in the backup: keep it where you would keep the key.')
          else if (manifest.key_id !== null)
            say(
              `The secret key (${manifest.key_id}) is not in it: keep that elsewhere, secrets cannot be read without it.`,
            )
          if (file !== undefined) call.print(file)
          return 0
        } finally {
          await output.discard()
        }
      })
    } catch (error) {
      throw error instanceof BackupError ? new CommandError(error.message, error) : error
    }
  },
})

async function findKey({ secret_key, data_dir }: Config): Promise<{ text: string; key_id: string }> {
  const text = secret_key ?? (await findSecretKey(data_dir))
  if (text === undefined)
    throw new CommandError(`There is no secret key to include: ${data_dir} has none, and CADRE_SECRET_KEY is not set.`)
  return { text, key_id: makeSecrets(text).key_id }
}
