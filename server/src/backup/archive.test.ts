import assert from 'node:assert/strict'
import { createWriteStream } from 'node:fs'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Writable } from 'node:stream'
import { after, before, describe, it } from 'node:test'
import { createGzip, gunzipSync, gzipSync } from 'node:zlib'
import { sizeOf } from '../../test/long-run.ts'
import { makeRng, testSeed } from '../../test/rng.ts'
import { readArchive } from './archive-reader.ts'
import { openArchiveWriter } from './archive-writer.ts'
import { BackupError } from './backup-error.ts'
import { delayedTasks, format, type Manifest } from './manifest.ts'

const manifest: Manifest = {
  format,
  cadre_version: '0.1.0',
  created_at: '2026-01-01T00:00:00.000Z',
  postgresql_version: '18.4',
  key_id: '00112233',
  migrations: [{ version: 1, name: '0001_first.sql', hash: 'a'.repeat(64) }],
  partitions: [],
  sequences: [],
  tables: [
    { name: 'small', columns: ['id', 'text'] },
    { name: 'nothing', columns: ['id'] },
    { name: 'large', columns: ['id', 'text'] },
    { name: delayedTasks, columns: ['task_id', 'start_after'] },
  ],
}
const signal = new AbortController().signal
const rng = makeRng(testSeed())

let folder: string
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'cadre-archive-'))
})
after(() => rm(folder, { recursive: true, force: true }))

/** Lines that hardly compress, so that the archive is larger than the buffers of the streams. */
function lines(count: number): string {
  return Array.from({ length: count }, (_, i) => `${i}\t${rng.between(0, 1e9).toString(36)} \\n ü\n`).join('')
}

/** Pieces of any size, as from a network, which cut characters and lines. */
async function* inPieces(text: string): AsyncGenerator<Buffer> {
  const bytes = Buffer.from(text)
  for (let at = 0; at < bytes.length;) {
    const end = at + Math.ceil(rng.between(1, 70_000))
    yield bytes.subarray(at, end)
    at = end
  }
}

async function write(name: string, tables: Record<string, string>, key?: string): Promise<string> {
  const file = join(folder, name)
  const writer = openArchiveWriter(createWriteStream(file), signal)
  await writer.manifest(manifest)
  if (key !== undefined) await writer.secretKey(key)
  for (const { name: table } of manifest.tables) await writer.table(table, inPieces(tables[table] ?? ''), () => {})
  await writer.end()
  return file
}

async function readTables(file: string): Promise<Record<string, string>> {
  const tables: Record<string, string> = {}
  await readArchive(file, {
    onTable: async ({ name }, rows) => {
      const chunks: Buffer[] = []
      for await (const chunk of rows) chunks.push(chunk)
      tables[name] = Buffer.concat(chunks).toString()
    },
  })
  return tables
}

describe('an archive', () => {
  it('an archive returns every byte of every table, in parts or not, and the key only if it was included', async () => {
    const tables = { small: 'a\t\\N\nb\t\\\\.\n', nothing: '', large: lines(30_000), [delayedTasks]: '' }
    const file = await write('whole.tar.gz', tables, ' a key that begins with a space, and is kept')
    assert.deepEqual(await readTables(file), tables)
    const content = await readArchive(file)
    assert.deepEqual(content.manifest, manifest)
    assert.equal(content.secret_key, ' a key that begins with a space, and is kept')
    assert.deepEqual(
      content.checksums.tables.map(({ name, rows, bytes }) => [name, rows, bytes]),
      Object.entries(tables).map(([name, text]) => [name, text.split('\n').length - 1, Buffer.byteLength(text)]),
    )
    const withoutKey = await readArchive(await write('keyless.tar.gz', tables))
    assert.equal(withoutKey.secret_key, undefined)
  })

  it('the checksum of a table that is not consumed is compared too', async () => {
    const file = await write('untaken.tar.gz', { large: lines(10_000) })
    const { checksums } = await readArchive(file, { onTable: async () => {} })
    assert.equal(checksums.tables.find(({ name }) => name === 'large')?.rows, 10_000)
    const onlyTheBeginning = async (_table: unknown, rows: AsyncIterable<Buffer>): Promise<void> => {
      for await (const _ of rows) break
    }
    await assert.rejects(readArchive(file, { onTable: onlyTheBeginning }), /stopped before their end/)
  })

  it('an archive that was cut off or has a flipped bit is refused', async () => {
    const whole = await readFile(
      await write(
        'source.tar.gz',
        { small: lines(10), large: lines(sizeOf({ short: 10_000, long: 60_000 })) },
        'k'.repeat(32),
      ),
    )
    const file = join(folder, 'damaged.tar.gz')
    const refused = async (bytes: Uint8Array, what: string): Promise<void> => {
      await writeFile(file, bytes)
      await assert.rejects(readArchive(file), (error) => error instanceof BackupError, what)
    }
    for (let i = 0; i < sizeOf({ short: 8, long: 25 }); i++) {
      const end = Math.floor(rng.between(0, whole.length - 1))
      await refused(whole.subarray(0, end), `cut to ${end} of ${whole.length}`)
    }
    await refused(whole.subarray(0, whole.length - 1), 'without the last byte')
    // After the ten bytes of gzip's header, which do not affect the content.
    for (let i = 0; i < sizeOf({ short: 10, long: 40 }); i++) {
      const at = Math.floor(rng.between(10, whole.length - 1))
      const turned = Buffer.from(whole)
      turned[at]! ^= 1 << Math.floor(rng.between(0, 7))
      await refused(turned, `a bit of byte ${at} of ${whole.length}`)
    }
  })

  it('an archive that was changed and compressed again is refused for its checksums', async () => {
    const tar = gunzipSync(await readFile(await write('honest.tar.gz', { small: 'one\t1\n', large: lines(10) })))
    const file = join(folder, 'changed.tar.gz')
    for (const [from, to] of [
      ['one\t1', 'one\t2'],
      ['"cadre_version": "0.1.0"', '"cadre_version": "0.1.1"'],
      ['data/small/000001', 'data/smell/000001'],
      ['"rows": 1,', '"rows": 2,'],
    ] as const) {
      const at = tar.indexOf(from)
      assert.ok(at > 0, from)
      const changed = Buffer.from(tar)
      changed.write(to, at)
      await writeFile(file, gzipSync(changed))
      await assert.rejects(readArchive(file), BackupError, from)
    }
  })

  it('a file that is not an archive is refused with the reason', async () => {
    for (const [name, bytes] of Object.entries({
      empty: Buffer.alloc(0),
      text: Buffer.from('-- PostgreSQL database dump'),
      'gzip of a text': gzipSync('nothing'),
      'gzip of nothing': gzipSync(Buffer.alloc(1024)),
    })) {
      const file = join(folder, name)
      await writeFile(file, bytes)
      await assert.rejects(readArchive(file), /no backup of Cadre|damaged/, name)
    }
    await assert.rejects(readArchive(join(folder, 'nowhere')), /cannot be read \(ENOENT\)/)
    await assert.rejects(readArchive(folder), /cannot be read \(EISDIR\)/)
  })

  it('an archive of a later layout is refused with a hint to the newer version', async () => {
    const file = join(folder, 'later.tar.gz')
    const writer = openArchiveWriter(createWriteStream(file), signal)
    await writer.manifest({ ...manifest, format: 2 })
    await writer.end()
    await assert.rejects(readArchive(file), /layout 2.*the newer version that wrote it/)
  })
})

describe('writing an archive', () => {
  it('writing an archive fails with the error of its stream', async () => {
    const full = new Writable({ write: (_chunk, _encoding, done) => done(new Error('no space left')) })
    const writer = openArchiveWriter(full, signal)
    await assert.rejects(async () => {
      await writer.manifest(manifest)
      await writer.table('large', inPieces(lines(200_000)), () => {})
    }, /no space left/)
  })

  it('writing an archive waits for a slow stream instead of buffering', async () => {
    let taken = 0
    let written = 0
    const gate = Promise.withResolvers<void>()
    const slow = new Writable({
      highWaterMark: 1024,
      write: (chunk: Buffer, _encoding, done) => {
        written += chunk.length
        void gate.promise.then(() => done())
      },
    })
    const writer = openArchiveWriter(slow, signal)
    const noise = Buffer.from(Array.from({ length: 65_536 }, () => Math.floor(rng.between(0, 255))))
    async function* endless(): AsyncGenerator<Buffer> {
      for (; taken < 400; taken += 1) yield noise
    }
    const writing = writer.manifest(manifest).then(() => writer.table('large', endless(), () => {}))
    // Other threads compress in order, so earlier work is done when this is.
    for (let i = 0; i < 20; i++)
      await new Promise((done) =>
        createGzip()
          .end(noise, () => setImmediate(done))
          .resume(),
      )
    const taken_bytes = taken * noise.length
    assert.ok(taken_bytes < 8 * 1024 * 1024, `${taken_bytes} bytes were taken, ${written} written`)
    gate.resolve()
    await writing
    await writer.end()
    assert.equal(taken, 400)
  })
})
