import { createHash } from 'node:crypto'
import type { Writable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createGzip } from 'node:zlib'
import { pack } from 'tar-stream'
import { type Checksums, entryNames, type Manifest, type TableChecksum } from './manifest.ts'

/** Maximum size of a table's part, which is held in memory. Larger parts do not make an archive smaller. */
const partSize_bytes = 1024 * 1024
/** Beyond this level the time doubles, and the size of an archive hardly changes. */
const compressionLevel = 4

/** Writes an archive to a stream; the functions must be called in their order here. */
export interface ArchiveWriter {
  manifest(manifest: Manifest): Promise<void>
  secretKey(key: string): Promise<void>
  /** Writes a table's rows in COPY's text format, and returns their checksum. */
  table(name: string, rows: AsyncIterable<Buffer>, onPart: (soFar: TableSize) => void): Promise<TableChecksum>
  /** Writes the checksums; resolves once the stream has ended. */
  end(): Promise<void>
}

export interface TableSize {
  rows: number
  bytes: number
}

/**
 * Starts an archive: tar, compressed by gzip. It ends `output`, or destroys it after an error or when `signal` aborts. Its
 * memory does not grow with the size of the archive.
 */
export function openArchiveWriter(output: Writable, signal: AbortSignal): ArchiveWriter {
  const tar = pack()
  // It emits the error of its target again later, without any other listener.
  tar.on('error', () => {})
  const written = pipeline(tar, createGzip({ level: compressionLevel }), output, { signal })
  // Prevents an unhandled rejection; the caller that waits for a part gets the error.
  written.catch(() => {})
  const checksums: Checksums = { entries: {}, tables: [] }
  const mtime = new Date()

  const entry = async (name: string, content: Buffer): Promise<void> => {
    const handed = new Promise<void>((resolve, reject) => {
      const entered = tar.entry({ name, mode: 0o600, mtime }, content, (error) => (error ? reject(error) : resolve()))
      entered.on('error', reject)
    })
    handed.catch(() => {})
    // After an error of the stream the entry is never consumed, so only `written` rejects.
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

/** Counts rows in COPY's text format: each is a line, because line breaks in values are escaped. */
export function countLines(chunk: Buffer): number {
  let lines = 0
  for (let at = chunk.indexOf(10); at >= 0; at = chunk.indexOf(10, at + 1)) lines += 1
  return lines
}
