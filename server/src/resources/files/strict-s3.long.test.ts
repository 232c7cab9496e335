import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { after, before, describe, it } from 'node:test'
import { startStrictS3, type StrictS3 } from '../../../test/fakes/strict-s3.ts'
import { eventually, startTestService, type TestService } from '../../../test/harness.ts'

const keys = { id: 'AKIDEXAMPLE', secret: 'a-secret-of-the-store' }
let s3: StrictS3
let settings: Record<string, string>
let test: TestService
before(async () => {
  s3 = await startStrictS3(keys)
  settings = {
    CADRE_FILES_S3_ENDPOINT: s3.endpoint,
    CADRE_FILES_S3_BUCKET: 'files',
    CADRE_FILES_S3_ACCESS_KEY_ID: keys.id,
    CADRE_FILES_S3_SECRET_ACCESS_KEY: keys.secret,
  }
  test = await startTestService(settings)
})
after(async () => {
  await test.stop()
  await s3.close()
})

async function project(of: TestService, name: string): Promise<string> {
  const { body } = await of.send('POST', '/api/v1/projects', { body: { name } })
  return `/api/v1/projects/${body.id}/files`
}
const upload = async (of: TestService, path: string, bytes: Buffer<ArrayBuffer>) => {
  const headers = { 'x-api-key': of.owner.api_key, 'content-type': 'application/octet-stream' }
  const response = await fetch(new URL(path, of.url), { method: 'POST', headers, body: bytes })
  return { status: response.status, body: (await response.json()) as any }
}

describe('a store that verifies signatures', () => {
  it('a store that verifies signatures accepts files whole and in parts, and deletes them with their rows', async () => {
    const path = await project(test, 'signed')
    for (const length of [100, 12_000_000]) {
      const bytes = Buffer.alloc(length, length % 251)
      const { status, body } = await upload(test, path, bytes)
      assert.equal(status, 201, JSON.stringify(body))
      assert.ok(s3.objects.get(body.id)!.equals(bytes))
      assert.equal((await test.send('DELETE', `${path}/${body.id}`)).status, 200)
      await test.service.context.files.sweepObjects()
      assert.equal(s3.objects.has(body.id), false)
    }
    assert.deepEqual([s3.refused, s3.uploads.size], [0, 0])
  })

  it('a store that verifies signatures refuses a wrong secret: the error omits the text of the store, and no row is left', async () => {
    const wrong = await startTestService({ ...settings, CADRE_FILES_S3_SECRET_ACCESS_KEY: 'another-secret' })
    try {
      const path = await project(wrong, 'refused')
      const { status, body } = await upload(wrong, path, Buffer.from('x'))
      assert.equal(status, 500)
      assert.doesNotMatch(JSON.stringify(body), /Signature|secret|S3/i)
      assert.deepEqual([(await wrong.sql`select 1 from file`).length, s3.refused > 0], [0, true])
    } finally {
      await wrong.stop()
    }
  })

  it('a store that verifies signatures keeps no incomplete upload after a disconnect or crash', async () => {
    const path = await project(test, 'cut')
    const { hostname, port } = new URL(test.url)
    const socket = connect(Number(port), hostname)
    socket.on('error', () => {})
    socket.write(
      `POST ${path} HTTP/1.1\r\nhost: x\r\nx-api-key: ${test.owner.api_key}\r\ncontent-type: text/plain\r\ncontent-length: 15000000\r\n\r\n`,
    )
    socket.write(Buffer.alloc(12_000_000, 'x'))
    await eventually(async () => s3.uploads.size === 1)
    socket.destroy()
    await eventually(async () => s3.uploads.size === 0)
    // A process that is killed aborts nothing: its row and its upload are there until the sweep.
    s3.uploads.set('left', 'file_left')
    s3.uploads.set('another', 'file_left_of_another_name')
    await test.sql`insert into file_object_left (file_id) values ('file_left')`
    await test.service.context.files.sweepObjects()
    assert.deepEqual([...s3.uploads.keys()], ['another'])
  })
})
