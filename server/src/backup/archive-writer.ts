import { createHash } from 'node:crypto'
import type { Writable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createGzip } from 'node:zlib'
import { pack } from 'tar-stream'
import { type Checksums, entryNames, type Manifest, type TableChecksum } from './manifest.ts'

/** What is held of a table at a time. Larger parts do not make an archive smaller. */
const partSize_bytes = 1024 * 1024
/** The size of an archive hardly changes beyond this level, the time it takes doubles. */
const compressionLevel = 4

/** Writes an archive to a stream, in the order of its functions: the manifest, the key, table by table, the end. */
export interface ArchiveWriter {
  manifest(manifest: Manifest): Promise<void>
  secretKey(key: string): Promise<void>
  /** Writes a table's rows, as COPY gives them in its text format, and gives how many they were. */
  table(name: string, rows: AsyncIterable<Buffer>, onPart: (soFar: TableSize) => void): Promise<TableChecksum>
  /** Writes the checksums; resolves once everything was handed to the stream and the stream has ended. */
  end(): Promise<void>
}

export interface TableSize {
  rows: number
  bytes: number
}

/**
 * Begins an archive: tar, compressed by gzip. `output` is ended by it, or destroyed where it failed. Memory does not grow
 * with what is written. Aborting `signal` destroys `output` too.
 */
export function openArchiveWriter(output: Writable, signal: AbortSignal): ArchiveWriter {
  const tar = pack()
  // It fails with its target once more and later, when there is no listener any more.
  tar.on('error', () => {})
  const written = pipeline(tar, createGzip({ level: compressionLevel }), output, { signal })
  // The caller that waits for a part gets the error; without this line it would also end the process.
  written.catch(() => {})
  const checksums: Checksums = { entries: {}, tables: [] }
  const mtime = new Date()

  const entry = async (name: string, content: Buffer): Promise<void> => {
    const handed = new Promise<void>((resolve, reject) => {
      const entered = tar.entry({ name, mode: 0o600, mtime }, content, (error) => (error ? reject(error) : resolve()))
      entered.on('error', reject)
    })
    handed.catch(() => {})
    // What cannot be written any more is never taken either.
    await Promise.race([handed, written])
  }
  const small = async (name: string, text: string): Promise<void> => {
    checksums.entries[name] = createHash('sha256').update(text).digest('hex')
    await entry(name, Buffer.from(text))
  }

  return {
    manifest: (manifest) => small(entryNames.manifest, `${JSON.stringify(manifest, null, 1)}\n`),
    secretKey: (key) => small(entryNames.secretKey, key),
    async table(name, rows, onPart) {
      const hash = createHash('sha256')
      const size: TableSize = { rows: 0, bytes: 0 }
      let part: Buffer[] = []
      let part_bytes = 0
      let number = 0
      const flush = async (): Promise<void> => {
        const content = Buffer.concat(part, part_bytes)
        part = []
        part_bytes = 0
        await entry(entryNames.part(name, (number += 1)), content)
        onPart(size)
      }
      for await (const chunk of rows) {
        hash.update(chunk)
        size.rows += countLines(chunk)
        size.bytes += chunk.length
        part.push(chunk)
        part_bytes += chunk.length
        if (part_bytes >= partSize_bytes) await flush()
      }
      if (part_bytes > 0) await flush()
      const checksum = { name, ...size, sha256: hash.digest('hex') }
      checksums.tables.push(checksum)
      return checksum
    },
    async end() {
      await entry(entryNames.checksums, Buffer.from(`${JSON.stringify(checksums, null, 1)}\n`))
      tar.finalize()
      await written
    },
  }
}

/** Rows of COPY's text format: each is a line, and a line break in a value is written as `\n`. */
export function countLines(chunk: Buffer): number {
  let lines = 0
  for (let at = chunk.indexOf(10); at >= 0; at = chunk.indexOf(10, at + 1)) lines += 1
  return lines
}
