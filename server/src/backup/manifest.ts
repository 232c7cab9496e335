import Type, { type Static } from 'typebox'
import Value from 'typebox/value'
import { BackupError } from './backup-error.ts'

/** Version of the archive's layout. A restore refuses any other. */
export const format = 1

/** Names of the entries of an archive in their order: manifest, optional key, parts of tables, checksums. */
export const entryNames = {
  manifest: 'manifest.json',
  secretKey: 'secret.key',
  /** A part of a table, numbered from 1. Tables have parts because the size of a tar entry must be known at its start. */
  part: (table: string, number: number) => `data/${table}/${String(number).padStart(6, '0')}`,
  checksums: 'checksums.json',
}

/**
 * An extra table of the archive: tasks with a delayed job, as `task_id` and `start_after`. All other jobs are derived from
 * the tasks.
 */
export const delayedTasks = 'delayed_task'

const Name = Type.String({ pattern: '^[a-z_][a-z0-9_]{0,62}$' })
const Hash = Type.String({ pattern: '^[0-9a-f]{64}$' })
const Count = Type.Integer({ minimum: 0 })

const ManifestSchema = Type.Object({
  format: Type.Integer(),
  /** Version of the service that wrote the archive. */
  cadre_version: Type.String(),
  /** Time of the snapshot, by the database's clock. */
  created_at: Type.String(),
  postgresql_version: Type.String(),
  /** Id of the key of the archive's secrets (`Secrets.key_id`); null if the service never started. */
  key_id: Type.Union([Type.String(), Type.Null()]),
  /** In order. The hash is that of the migration's text. */
  migrations: Type.Array(Type.Object({ version: Count, name: Type.String(), hash: Hash }), { minItems: 1 }),
  /** Partitions with their time bounds. */
  partitions: Type.Array(Type.Object({ table: Name, name: Name, from: Type.String(), to: Type.String() })),
  /** The last number of each identity column. */
  sequences: Type.Array(Type.Object({ table: Name, column: Name, last_value: Count })),
  /** In an order in which referenced rows come first. */
  tables: Type.Array(Type.Object({ name: Name, columns: Type.Array(Name, { minItems: 1 }) }), { minItems: 1 }),
})

/** The manifest of an archive, which is before its data. */
export type Manifest = Static<typeof ManifestSchema>

const ChecksumsSchema = Type.Object({
  /** SHA-256 of the entries before the data. */
  entries: Type.Record(Type.String(), Hash),
  /** Over all parts of a table. */
  tables: Type.Array(Type.Object({ name: Name, rows: Count, bytes: Count, sha256: Hash })),
})

/** The checksums of an archive, which are after its data: an archive without them was cut off. */
export type Checksums = Static<typeof ChecksumsSchema>
export type TableChecksum = Checksums['tables'][number]

/** Parses a manifest. Throws `BackupError` if it is invalid or has another layout. */
export function readManifest(text: string): Manifest {
  const value = parse(text)
  const written = typeof value === 'object' && value !== null && 'format' in value ? value.format : undefined
  if (typeof written === 'number' && written !== format) {
    throw new BackupError(
      `The archive has layout ${written}, and this version of Cadre reads layout ${format}. Restore it with the newer version that wrote it.`,
    )
  }
  if (!Value.Check(ManifestSchema, value))
    throw new BackupError('The archive has an invalid manifest, so it cannot be restored.')
  return value
}

/** Parses checksums. Throws `BackupError` if they are invalid. */
export function readChecksums(text: string): Checksums {
  const value = parse(text)
  if (!Value.Check(ChecksumsSchema, value))
    throw new BackupError('The archive has invalid checksums, so it cannot be restored.')
  return value
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
