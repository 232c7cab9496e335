import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { request } from 'node:http'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { finished, pipeline } from 'node:stream/promises'
import pg from 'pg'
import { from as copyFrom, to as copyTo } from 'pg-copy-streams'
import { pino } from 'pino'
import { fileBounds } from '#contract/resources/files.ts'
import { databaseEnvironment, startProcess } from '../e2e/process.ts'
import { startEmbeddedPostgres } from '../server/src/platform/embedded-postgres/embedded-postgres.ts'
import { load, machine, summarize } from './figures.ts'
import { readOptions } from './parts/options.ts'

/**
 * Megabytes a second of uploads and downloads of the largest file, in turns with a binary `COPY` of the same pieces over one
 * connection to the same PostgreSQL, and with the same bytes over a bare socket; then the memory of the service's process
 * during many parallel uploads, by the kernel. Ends with 1 where an upload takes more than 8 MiB of it. Needs Linux.
 *
 *     node bench/files.ts --rounds 5 --uploads 50 [--s3 http://127.0.0.1:4568]
 *
 * With `--s3` the service keeps the bytes in the bucket `files` of that store, whose keys are `S3RVER`, as those of s3rver are.
 */
const values = readOptions({
  rounds: { type: 'string', default: '5' },
  uploads: { type: 'string', default: '50' },
  s3: { type: 'string' },
})
const [rounds, uploads] = [Number(values.rounds), Number(values.uploads)]
const mib = 1_048_576
const pieces = fileBounds.bytes / mib
const boundMiB = 8

const key = 'cadre_00112233445566778899aabbccddeeff'
const folder = await mkdtemp(join(tmpdir(), 'cadre-bench-'))
const postgres = await startEmbeddedPostgres({ data_dir: folder, log: pino({ level: 'warn' }) })
const service = await startProcess({
  ...databaseEnvironment(postgres.connection),
  CADRE_DATA_DIR: folder,
  CADRE_ADMIN_API_KEY: key,
  CADRE_RATE_LIMITS_SCALE: '1000',
  CADRE_FILES_MAX_BYTES_PROJECT: String(fileBounds.bytes * 1000),
  ...(values.s3 === undefined
    ? {}
    : {
        CADRE_FILES_S3_ENDPOINT: values.s3,
        CADRE_FILES_S3_BUCKET: 'files',
        CADRE_FILES_S3_ACCESS_KEY_ID: 'S3RVER',
        CADRE_FILES_S3_SECRET_ACCESS_KEY: 'S3RVER',
      }),
})
const bare = spawn(process.execPath, [join(import.meta.dirname, 'parts', 'byte-server.ts')], {
  stdio: ['ignore', 'pipe', 'inherit'],
})
const [port] = (await once(bare.stdout, 'data')).map(Number)
const client = new pg.Client(postgres.connection)
await client.connect()
const bytes = randomBytes(fileBounds.bytes)
let copies = 0

try {
  await client.query('create table raw_piece (file_id text, index int, bytes bytea, primary key (file_id, index))')
  await client.query('alter table raw_piece alter column bytes set storage external')
  const path = `/api/v1/projects/${(await send('POST', '/api/v1/projects', Buffer.from('{"name":"bench"}'), 'application/json')).id}/files`
  const { id } = await upload(path)
  const copied = await copyIn()
  const measured: Record<string, () => Promise<unknown>> = {
    Upload: () => upload(path),
    'COPY of its pieces': copyIn,
    'Bare socket, there': () => exchange('u'),
    Download: () => download(`${path}/${id}/content`),
    'COPY of its pieces back': () => copyOut(copied),
    'Bare socket, back': () => exchange('d'),
  }
  for (const run of Object.values(measured)) await run()
  console.log(`${rounds} rounds of ${pieces} MiB each. Before: ${machine()}.\n`)
  const rates: Record<string, number[]> = {}
  for (let round = 0; round < rounds; round++)
    for (const [name, run] of Object.entries(measured)) {
      const began_ms = performance.now()
      await run()
      ;(rates[name] ??= []).push(bytes.length / 1e6 / ((performance.now() - began_ms) / 1000))
    }
  console.log('| MB/s | least | median | most | of it the service does |\n|---|---|---|---|---|')
  const names = Object.keys(measured)
  for (const [at, name] of names.entries()) {
    const { min, median, max } = summarize(rates[name]!)
    const service_median = summarize(rates[at < names.length / 2 ? 'Upload' : 'Download']!).median
    console.log(
      `| ${name} | ${min.toFixed(0)} | ${median.toFixed(0)} | ${max.toFixed(0)} | ${(service_median / median).toFixed(2)} |`,
    )
  }
  const perUpload = await memoryOf(path)
  console.log(`\nAfter: load ${load().toFixed(2)}.`)
  if (perUpload > boundMiB) process.exitCode = 1
} finally {
  bare.kill()
  await client.end()
  await service.end()
  await postgres.stop()
  await rm(folder, { recursive: true, force: true })
}

/** Uploads many files at a time and gives by how many MiB the peak of the process grew for each. */
async function memoryOf(path: string): Promise<number> {
  const pid = service.process.pid!
  const before = await residentMiB(pid, 'VmRSS')
  // The peak counts from here on.
  await writeFile(`/proc/${pid}/clear_refs`, '5')
  const began_ms = performance.now()
  await Promise.all(Array.from({ length: uploads }, () => upload(path)))
  const seconds = (performance.now() - began_ms) / 1000
  const peak = await residentMiB(pid, 'VmHWM')
  const each = (peak - before) / uploads
  console.log(`
| ${uploads} parallel uploads of ${pieces} MiB | |
|---|---|
| Memory before, MiB | ${before.toFixed(0)} |
| Peak, MiB | ${peak.toFixed(0)} |
| Growth of each upload, MiB (bound ${boundMiB}) | ${each.toFixed(2)} |
| Together, MB/s | ${((uploads * bytes.length) / 1e6 / seconds).toFixed(0)} |`)
  return each
}

/** A figure of `/proc/<pid>/status`, in MiB: `VmRSS` now, `VmHWM` the peak. */
async function residentMiB(pid: number, name: 'VmRSS' | 'VmHWM'): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8')
  return Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(status)![1]) / 1024
}

function upload(path: string): Promise<{ id: string }> {
  return send('POST', path, bytes, 'application/octet-stream')
}

async function send(method: string, path: string, body: Buffer, type: string): Promise<{ id: string }> {
  const headers = { 'x-api-key': key, 'content-type': type, 'content-length': body.length }
  const sent = request(new URL(path, service.url), { method, headers })
  // A refusal comes before the body was taken; its answer says why.
  sent.on('error', () => {}).end(body)
  const [response] = (await once(sent, 'response')) as [Readable & { statusCode: number }]
  const text = Buffer.concat(await response.toArray()).toString()
  assert.equal(response.statusCode, 201, text)
  return JSON.parse(text) as { id: string }
}

async function download(path: string): Promise<void> {
  const asked = request(new URL(path, service.url), { headers: { 'x-api-key': key } }).end()
  const [response] = (await once(asked, 'response')) as [Readable]
  await expectAll(response)
}

/** Sends the bytes to the bare server, or reads as many of it. */
async function exchange(what: 'u' | 'd'): Promise<void> {
  const socket = connect(port!, '127.0.0.1')
  const head = Buffer.alloc(5, what)
  head.writeUInt32BE(bytes.length, 1)
  socket.write(head)
  if (what === 'd') return expectAll(socket)
  socket.write(bytes)
  socket.resume()
  await finished(socket, { writable: false })
}

async function expectAll(stream: Readable): Promise<void> {
  let count = 0
  for await (const chunk of stream) count += (chunk as Buffer).length
  assert.equal(count, bytes.length)
}

/** Rows in the binary format of `COPY`: the identifier, the place, and a MiB of bytes. */
function* rowsOf(file_id: string): Generator<Buffer> {
  yield Buffer.from('PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0', 'latin1')
  for (let index = 0; index < pieces; index++) {
    const head = Buffer.alloc(2 + 4 + file_id.length + 4 + 4 + 4)
    let at = head.writeInt16BE(3)
    at = head.writeInt32BE(file_id.length, at)
    at += head.write(file_id, at)
    at = head.writeInt32BE(4, at)
    at = head.writeInt32BE(index, at)
    head.writeInt32BE(mib, at)
    yield head
    yield bytes.subarray(index * mib, (index + 1) * mib)
  }
  yield Buffer.from([0xff, 0xff])
}

async function copyIn(): Promise<string> {
  const file_id = `file_${(copies += 1)}`
  await pipeline(
    Readable.from(rowsOf(file_id)),
    client.query(copyFrom('copy raw_piece (file_id, index, bytes) from stdin (format binary)')),
  )
  return file_id
}

async function copyOut(file_id: string): Promise<void> {
  const statement = `copy (select bytes from raw_piece where file_id = '${file_id}' order by index) to stdout (format binary)`
  let count = 0
  for await (const chunk of client.query(copyTo(statement))) count += (chunk as Buffer).length
  assert.ok(count > bytes.length)
}
