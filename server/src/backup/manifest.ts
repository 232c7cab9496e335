import Type, { type Static } from 'typebox'
import Value from 'typebox/value'
import { BackupError } from './backup-error.ts'

/** Of the archive's layout. A restore refuses what it does not know. */
export const format = 1

/** Names of the entries of an archive, in their order: the manifest, maybe the key, parts of tables, the checksums. */
export const entryNames = {
  manifest: 'manifest.json',
  secretKey: 'secret.key',
  /** A table is cut into parts, because an entry's size must be known before it begins; the first is 1. */
  part: (table: string, number: number) => `data/${table}/${String(number).padStart(6, '0')}`,
  checksums: 'checksums.json',
}

/**
 * Not a table of the database: tasks with a delayed job, `task_id` and `start_after`. All other jobs follow from the
 * tasks.
 */
export const delayedTasks = 'delayed_task'

const Name = Type.String({ pattern: '^[a-z_][a-z0-9_]{0,62}$' })
const Hash = Type.String({ pattern: '^[0-9a-f]{64}$' })
const Count = Type.Integer({ minimum: 0 })

const ManifestSchema = Type.Object({
  format: Type.Integer(),
  /** Of the service that wrote it. */
  cadre_version: Type.String(),
  /** The moment that the archive shows, by the database's clock. */
  created_at: Type.String(),
  postgresql_version: Type.String(),
  /** Of the key that the secrets in it are encrypted with (`Secrets.key_id`); null where the service never started. */
  key_id: Type.Union([Type.String(), Type.Null()]),
  /** In their order. The hash is that of the migration's text. */
  migrations: Type.Array(Type.Object({ version: Count, name: Type.String(), hash: Hash }), { minItems: 1 }),
  /** Partitions by time that there were, with their bounds. */
  partitions: Type.Array(Type.Object({ table: Name, name: Name, from: Type.String(), to: Type.String() })),
  /** The last number that each identity column gave. */
  sequences: Type.Array(Type.Object({ table: Name, column: Name, last_value: Count })),
  /** In an order in which no row comes before one that it refers to. */
  tables: Type.Array(Type.Object({ name: Name, columns: Type.Array(Name, { minItems: 1 }) }), { minItems: 1 }),
})

/** What an archive is, known before its data. */
export type Manifest = Static<typeof ManifestSchema>

const ChecksumsSchema = Type.Object({
  /** SHA-256 of the entries before the data. */
  entries: Type.Record(Type.String(), Hash),
  /** Of all parts of a table together. */
  tables: Type.Array(Type.Object({ name: Name, rows: Count, bytes: Count, sha256: Hash })),
})

/** What an archive held, known behind its data: an archive without them was cut off. */
export type Checksums = Static<typeof ChecksumsSchema>
export type TableChecksum = Checksums['tables'][number]

/** Reads a manifest. Throws `BackupError` where it is none, or of a layout of which this build knows nothing. */
export function readManifest(text: string): Manifest {
  const value = parse(text)
  const written = typeof value === 'object' && value !== null && 'format' in value ? value.format : undefined
  if (typeof written === 'number' && written !== format) {
    throw new BackupError(
      `The archive has layout ${written}, and this version of Cadre reads layout ${format}: a newer version wrote it.`,
    )
  }
  if (!Value.Check(ManifestSchema, value)) throw new BackupError('The manifest of the archive is not understood.')
  return value
}

/** Reads the checksums. Throws `BackupError` where they are none. */
export function readChecksums(text: string): Checksums {
  const value = parse(text)
  if (!Value.Check(ChecksumsSchema, value)) throw new BackupError('The checksums of the archive are not understood.')
  return value
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
