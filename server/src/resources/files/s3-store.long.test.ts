import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { connect, type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
// @ts-expect-error -- the package has no types
import S3rver from 's3rver'
import { readConfig } from '../../config/config.ts'
import { fileBounds } from '#contract/resources/files.ts'
import { eventually, startTestService, type TestService } from '../../../test/harness.ts'

/** Types of `s3rver`, a server of the S3 protocol on a folder, that knows uploads in parts. */
interface S3Server {
  run(): Promise<AddressInfo>
  close(): Promise<void>
}

let folder: string
let server: S3Server
let settings: Record<string, string>
let test: TestService
let files: string

before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'cadre-s3-'))
  const configureBuckets = [{ name: 'files', configs: [] }]
  server = new S3rver({ port: 0, address: '127.0.0.1', silent: true, directory: folder, configureBuckets }) as S3Server
  const { port } = await server.run()
  settings = {
    CADRE_FILES_S3_ENDPOINT: `http://127.0.0.1:${port}`,
    CADRE_FILES_S3_BUCKET: 'files',
    CADRE_FILES_S3_ACCESS_KEY_ID: 'S3RVER',
    CADRE_FILES_S3_SECRET_ACCESS_KEY: 'S3RVER',
  }
  test = await startTestService(settings)
  const made = await test.send('POST', '/api/v1/projects', { body: { name: 'objects' } })
  files = `/api/v1/projects/${made.body.id}/files`
})
after(async () => {
  await test.stop()
  await server.close()
  await rm(folder, { recursive: true, force: true })
})

const headers = (): Record<string, string> => ({
  'x-api-key': test.owner.api_key,
  'content-type': 'application/octet-stream',
})
async function upload(body: Uint8Array<ArrayBuffer>): Promise<{ status: number; body: any }> {
  const response = await fetch(new URL(files, test.url), { method: 'POST', headers: headers(), body })
  return { status: response.status, body: await response.json() }
}
/** Bytes that are the same nowhere. */
function bytesOf(length: number): Buffer<ArrayBuffer> {
  const bytes = Buffer.alloc(length)
  for (let i = 0; i + 4 <= length; i += 4) bytes.writeUInt32BE((i * 2_654_435_761) % 2 ** 32, i)
  return bytes
}
/** Identifiers of the objects that the store has. */
const objects = async (): Promise<string[]> => {
  const entries = await readdir(join(folder, 'files'), { recursive: true })
  return [...new Set(entries.flatMap((entry) => /file_[0-9a-z]{26}/.exec(entry)?.[0] ?? []))]
}

describe('files in an S3-compatible store', () => {
  for (const length of [10, 1_048_576, 5 * 1_048_576, 5 * 1_048_576 + 1, fileBounds.bytes])
    it(`files in an S3-compatible store of ${length} bytes come back as they were, whole and in ranges`, async () => {
      const bytes = bytesOf(length)
      const { status, body } = await upload(bytes)
      assert.deepEqual([status, body.bytes], [201, length], JSON.stringify(body))
      assert.equal(body.sha256, createHash('sha256').update(bytes).digest('hex'))
      const content = new URL(`${files}/${body.id}/content`, test.url)
      const whole = await fetch(content, { headers: headers() })
      assert.ok(Buffer.from(await whole.bytes()).equals(bytes))
      if (length > 1000) {
        const part = await fetch(content, { headers: { ...headers(), range: `bytes=${length - 900}-${length - 100}` } })
        assert.equal(part.status, 206)
        assert.ok(Buffer.from(await part.bytes()).equals(bytes.subarray(length - 900, length - 99)))
      }
      assert.equal((await test.sql`select 1 from file_piece`).length, 0)
      assert.deepEqual(await test.sql`select store from file where id = ${body.id}`, [{ store: 's3' }])
      assert.ok((await objects()).includes(body.id))
    })

  it('files in an S3-compatible store are deleted with their rows, also with their project', async () => {
    const one = await upload(bytesOf(100))
    const other = await test.send('POST', '/api/v1/projects', { body: { name: 'short-lived' } })
    const theirs = await fetch(new URL(`/api/v1/projects/${other.body.id}/files`, test.url), {
      method: 'POST',
      headers: headers(),
      body: bytesOf(200),
    })
    const two = (await theirs.json()) as { id: string }
    assert.equal((await test.send('DELETE', `${files}/${one.body.id}`)).status, 200)
    assert.equal((await test.send('DELETE', `/api/v1/projects/${other.body.id}`)).status, 200)
    await eventually(async () => (await test.sql`select 1 from file where id = ${two.id}`).length === 0)
    await test.service.context.files.sweepObjects()
    const left = await objects()
    assert.deepEqual([left.includes(one.body.id), left.includes(two.id)], [false, false])
    assert.equal((await test.sql`select 1 from file_object_left`).length, 0)
  })

  it('files in an S3-compatible store leave nothing of an upload that is cut off or too large', async () => {
    const before = (await objects()).sort()
    const { hostname, port } = new URL(test.url)
    for (const sent of [100, 7_000_000]) {
      const socket = connect(Number(port), hostname)
      socket.on('error', () => {})
      socket.write(
        `POST ${files} HTTP/1.1\r\nhost: x\r\nx-api-key: ${test.owner.api_key}\r\ncontent-type: text/plain\r\ncontent-length: 9000000\r\n\r\n`,
      )
      socket.write(bytesOf(sent))
      await eventually(async () => (await test.sql`select 1 from file where sha256 is null`).length === 1)
      socket.destroy()
      await eventually(async () => (await test.sql`select 1 from file where sha256 is null`).length === 0)
    }
    const body = new Blob([bytesOf(fileBounds.bytes), 'x']).stream()
    const large = await fetch(new URL(files, test.url), {
      method: 'POST',
      headers: headers(),
      body,
      duplex: 'half',
    })
    assert.equal(large.status, 413)
    await test.service.context.files.sweepObjects()
    assert.deepEqual((await objects()).sort(), before)
  })

  it('an upload that the S3-compatible store refuses is an error and leaves no row', async () => {
    const wrong = await startTestService({ ...settings, CADRE_FILES_S3_ACCESS_KEY_ID: 'wrong' })
    try {
      const made = await wrong.send('POST', '/api/v1/projects', { body: { name: 'refused' } })
      const path = `/api/v1/projects/${made.body.id}/files`
      const reply = await wrong.send('POST', path, { body: 'x', headers: { 'content-type': 'text/plain' } })
      assert.equal(reply.status, 500)
      assert.doesNotMatch(JSON.stringify(reply.body), /AccessKey|S3/)
      assert.equal((await wrong.sql`select 1 from file`).length, 0)
    } finally {
      await wrong.stop()
    }
  })

  it('an S3-compatible store needs all of its settings', () => {
    const { CADRE_FILES_S3_SECRET_ACCESS_KEY: _secret, ...some } = settings
    assert.throws(() => readConfig(some), /CADRE_FILES_S3_SECRET_ACCESS_KEY: it is unset/)
    assert.throws(() => readConfig({ CADRE_FILES_S3_ENDPOINT: 'https://s3.example.com' }), /CADRE_FILES_S3_BUCKET/)
  })
})
