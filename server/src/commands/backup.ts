import { stat } from 'node:fs/promises'
import { backUp } from '../backup/back-up.ts'
import { BackupError } from '../backup/backup-error.ts'
import { filesOutside } from '../backup/files-outside.ts'
import { archiveFile, openOutputFile, standardOutput } from '../backup/output-file.ts'
import { count, makeProgress, megabytes } from '../backup/progress.ts'
import type { Config } from '../config/config.ts'
import { makeSecrets } from '../platform/crypto/secrets.ts'
import { version } from '../version.ts'
import { CommandError, defineCommand, UsageError } from './command.ts'
import { withInstallation } from './installation.ts'
import { keyHere } from './secret-keys.ts'

/** `cadre backup`: writes everything that a restore needs, except the secret key. */
export const backup = defineCommand({
  description:
    'Writes all data of one moment to one compressed file (tar, gzip) with checksums, while the service runs and stays available. ' +
    '`cadre restore` loads the file into an empty database, embedded or not, of this version or a later one.\n' +
    'The secret key is not in the backup: keep a copy of it elsewhere. It is CADRE_SECRET_KEY, or the file secret.key of the data ' +
    'folder. Environment variables of agents, credentials and webhook secrets cannot be decrypted without it.\n' +
    'For files in an S3-compatible store (CADRE_FILES_S3_BUCKET) the backup has only names and digests: back up the bucket after it.\n' +
    'The file appears under its name once it is complete. Its mode is 0600.',
  examples: [
    'cadre backup',
    'cadre backup --output /backups/',
    'cadre backup --output - | age -r $RECIPIENT > cadre.tar.gz.age',
  ],
  arguments: [],
  options: {
    output: {
      type: 'string',
      short: 'o',
      value: 'file',
      description:
        'File to write, or a folder for cadre-backup-<time>.tar.gz; `-` is standard output. Default: the current folder.',
    },
    force: { type: 'boolean', description: 'Overwrite an existing file.' },
    'include-secret-key': {
      type: 'boolean',
      description: 'Include the secret key. Anyone who has the file can then read every secret.',
    },
    quiet: { type: 'boolean', short: 'q', description: 'Print nothing except errors.' },
  },
  run: async ({ options, ...call }) => {
    const say = options.quiet ? (): void => {} : call.note
    const isStream = options.output === '-'
    if (isStream && process.stdout.isTTY)
      throw new UsageError('Standard output is a terminal. Redirect it, or name a file with --output.')
    const began_ms = performance.now()
    const file = isStream ? undefined : await archiveFile(options.output, new Date())
    try {
      return await withInstallation(call, { schema: 'any' }, async ({ connection, config, sql }) => {
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
          const outside = await filesOutside(sql)
          if (outside !== undefined) say(`${outside} Back up its bucket now: then every file has its bytes.`)
          if (secret_key) call.note('The backup contains the secret key. Protect the file like the key.')
          else if (manifest.key_id !== null)
            say(
              `The secret key (${manifest.key_id}) is not in the backup. Keep a copy of it: secrets cannot be decrypted without it.`,
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

async function findKey(config: Config): Promise<{ text: string; key_id: string }> {
  const here = await keyHere(config)
  if (!here)
    throw new CommandError(
      `No secret key to include: ${config.data_dir} has no secret.key, and CADRE_SECRET_KEY is not set.`,
    )
  return { text: here.text, key_id: makeSecrets(here.text).key_id }
}
