import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { pipeline } from 'node:stream/promises'
import { createGunzip } from 'node:zlib'
import { extract, type Extract } from 'tar-stream'
import { countLines, type TableSize } from './archive-writer.ts'
import { BackupError } from './backup-error.ts'
import {
  type Checksums,
  entryNames,
  type Manifest,
  readChecksums,
  readManifest,
  type TableChecksum,
} from './manifest.ts'

type Entry = Extract extends AsyncIterable<infer Each> ? Each : never

/** Maximum size of entries that are not rows. */
const smallMax_bytes = 64 * 1024 * 1024

/** Manifest, key and checksums of an archive. */
export interface ArchiveContent {
  manifest: Manifest
  /** Undefined if the archive has none. */
  secret_key: string | undefined
  checksums: Checksums
}

/** Callbacks while an archive is read. */
export interface ArchiveReading {
  /** Called before the first table. */
  onBegin?: (content: Omit<ArchiveContent, 'checksums'>) => Promise<void>
  /** Consumes all rows of a table, in COPY's text format. */
  onTable?: (table: Manifest['tables'][number], rows: AsyncIterable<Buffer>) => Promise<void>
  onPart?: (table: string, soFar: TableSize) => void
  signal?: AbortSignal
}

/**
 * Reads a whole archive and compares it with its checksums. The checksums are at its end, so rows that were passed to
 * `onTable` may still turn out to be damaged; then it throws.
 * @throws BackupError, or the errors of the callbacks
 */
export async function readArchive(file: string, reading: ArchiveReading = {}): Promise<ArchiveContent> {
  const tar = extract()
  // It emits the error of its source again later, without any other listener.
  tar.on('error', () => {})
  const source = createReadStream(file)
  let fault: unknown
  const read = pipeline(source, createGunzip(), tar, reading.signal ? { signal: reading.signal } : {}).catch(
    (error: unknown) => void (fault ??= error),
  )
  try {
    const content = await readEntries(new Entries(tar), reading)
    await read
    if (fault !== undefined) throw new UnreadableArchive('the archive ends early', { cause: fault })
    return content
  } catch (error) {
    // Read before the streams are destroyed, which causes further errors.
    const cause = fault
    tar.destroy()
    source.destroy()
    await read
    if (reading.signal?.aborted) throw reading.signal.reason
    throw explain(file, error, cause ?? fault)
  }
}

/** The stream of the archive failed. */
class UnreadableArchive extends Error {}

/** The content of the archive is invalid. */
class Damaged extends Error {}

/** Turns a read error into a `BackupError` for the operator; returns errors of the consumer of rows unchanged. */
function explain(file: string, error: unknown, fault: unknown): unknown {
  const isUnreadable = error instanceof UnreadableArchive
  if (!isUnreadable && !(error instanceof Damaged)) return error
  const cause = isUnreadable ? (fault ?? error.cause) : error
  if (codeOf(cause)?.startsWith('E'))
    return new BackupError(`The archive ${file} cannot be read (${codeOf(cause)}).`, error)
  const said = cause instanceof Error ? cause.message : error.message
  return new BackupError(
    `The archive ${file} is damaged or not a backup of Cadre: ${said}. Nothing was changed.`,
    error,
  )
}

async function readEntries(entries: Entries, { onBegin, onTable, onPart }: ArchiveReading): Promise<ArchiveContent> {
  const hashes: Record<string, string> = {}
  const small = async (name: string): Promise<string> => {
    const text = await entries.text(name)
    hashes[name] = createHash('sha256').update(text).digest('hex')
    return text
  }
  const manifest = readManifest(await small(entryNames.manifest))
  const hasKey = (await entries.next()) === entryNames.secretKey
  const secret_key = hasKey ? await small(entryNames.secretKey) : undefined
  await onBegin?.({ manifest, secret_key })

  const tables: TableChecksum[] = []
  for (const table of manifest.tables) {
    const { rows, checksum } = measured(table.name, entries, onPart)
    if (onTable) await onTable(table, rows)
    // Rows that were not consumed are compared too.
    for await (const _ of rows) continue
    tables.push(checksum())
  }
  const checksums = readChecksums(await entries.text(entryNames.checksums))
  if ((await entries.next()) !== undefined) throw new Damaged(`it has entries after ${entryNames.checksums}`)
  for (const [name, hash] of Object.entries(hashes))
    if (checksums.entries[name] !== hash) throw new Damaged(`${name} does not match its checksum`)
  if (Object.keys(checksums.entries).length !== Object.keys(hashes).length) throw new Damaged('an entry is missing')
  compareTables(tables, checksums.tables)
  return { manifest, secret_key, checksums }
}

function compareTables(read: readonly TableChecksum[], written: readonly TableChecksum[]): void {
  if (read.length !== written.length) throw new Damaged('a table is missing')
  for (const [i, { name, rows, bytes, sha256 }] of read.entries()) {
    const expected = written[i]!
    const isSame =
      expected.name === name && expected.rows === rows && expected.bytes === bytes && expected.sha256 === sha256
    if (!isSame) throw new Damaged(`table ${name} (${rows} of ${expected.rows} rows) does not match its checksum`)
  }
}

/** The rows of a table over all its parts, measured while they are read; they can be read once. */
function measured(
  table: string,
  entries: Entries,
  onPart: ArchiveReading['onPart'],
): { rows: AsyncGenerator<Buffer>; checksum: () => TableChecksum } {
  const hash = createHash('sha256')
  const size: TableSize = { rows: 0, bytes: 0 }
  let isWhole = false
  async function* read(): AsyncGenerator<Buffer> {
    for (let number = 1; (await entries.next()) === entryNames.part(table, number); number += 1) {
      for await (const chunk of entries.take()) {
        hash.update(chunk)
        size.rows += countLines(chunk)
        size.bytes += chunk.length
        yield chunk
      }
      onPart?.(table, size)
    }
    isWhole = true
  }
  return {
    rows: read(),
    checksum() {
      if (!isWhole) throw new Error(`the consumer of the rows of ${table} stopped before their end`)
      return { name: table, ...size, sha256: hash.digest('hex') }
    },
  }
}

/** The entries of a tar in sequence; the name of the next one is known before it is taken. */
class Entries {
  readonly #iterator: AsyncIterator<Entry>
  #next: Promise<Entry | undefined> | undefined

  constructor(tar: AsyncIterable<Entry>) {
    this.#iterator = tar[Symbol.asyncIterator]()
  }

  /** The name of the next entry; undefined at the end. */
  async next(): Promise<string | undefined> {
    return (await this.#peek())?.header.name
  }

  async *take(): AsyncGenerator<Buffer> {
    const entry = await this.#peek()
    this.#next = undefined
    try {
      if (entry) yield* entry as AsyncIterable<Buffer>
    } catch (error) {
      throw new UnreadableArchive('an entry ends early', { cause: error })
    }
  }

  /** The text of the next entry, which must have this name. */
  async text(name: string): Promise<string> {
    const found = await this.next()
    if (found !== name)
      throw new Damaged(found === undefined ? `${name} is missing` : `it has ${found} instead of ${name}`)
    const chunks: Buffer[] = []
    let bytes = 0
    for await (const chunk of this.take()) {
      chunks.push(chunk)
      if ((bytes += chunk.length) > smallMax_bytes) throw new Damaged(`${name} is too large`)
    }
    return Buffer.concat(chunks).toString('utf8')
  }

  #peek(): Promise<Entry | undefined> {
    this.#next ??= this.#iterator.next().then(
      ({ value, done }) => (done ? undefined : value),
      (error: unknown) => {
        throw new UnreadableArchive('the archive ends early', { cause: error })
      },
    )
    return this.#next
  }
}

function codeOf(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error ? String(error.code) : undefined
}
