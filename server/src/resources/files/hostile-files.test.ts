import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { gzipSync } from 'node:zlib'
import { startTestService, type Reply, type TestService } from '../../../test/harness.ts'

let test: TestService
let project: string
let agent: string
const quota = 3_000_000

before(async () => {
  test = await startTestService({ CADRE_FILES_MAX_BYTES_PROJECT: String(quota) })
  const made = await test.send('POST', '/api/v1/projects', { body: { name: 'hostile' } })
  project = `/api/v1/projects/${made.body.id}`
  const config = { model: 'builtin/script', tools: ['request_input', 'read_file'] }
  agent = (await test.send('POST', `${project}/agents`, { body: { name: 'script', config } })).body.id
})
after(() => test.stop())

async function upload(
  bytes: Buffer<ArrayBuffer>,
  {
    at = project,
    key = test.owner.api_key,
    headers = {},
  }: { at?: string; key?: string; headers?: Record<string, string> } = {},
): Promise<{ status: number; body: any }> {
  const response = await fetch(new URL(`${at}/files?name=f`, test.url), {
    method: 'POST',
    headers: { 'x-api-key': key, 'content-type': 'application/octet-stream', ...headers },
    body: bytes,
  })
  return { status: response.status, body: await response.json() }
}
const script = (...steps: unknown[]): string => JSON.stringify(steps)
const give = (input: unknown): Promise<Reply> =>
  test.send('POST', `${project}/agents/${agent}/tasks?wait=30`, { body: { input } })

describe('files that mean harm', () => {
  it('malicious files are sent as downloads that no browser runs, whatever other format they match', async () => {
    const script = '<script>alert(1)</script>'
    const polyglots: [string, Buffer<ArrayBuffer>, string][] = [
      ['a picture and a program', Buffer.from(`GIF89a=1;/*${'x'.repeat(100)}*/alert(1)`), 'image/gif'],
      ['a document and a page', Buffer.from(`%PDF-1.4\n<html>${script}</html>`), 'application/pdf'],
      ['a page behind a byte order mark', Buffer.from(`\uFEFF <!doctype html>${script}`), 'text/html'],
      [
        'a drawing with a program',
        Buffer.from(`<svg xmlns="http://www.w3.org/2000/svg">${script}</svg>`),
        'image/svg+xml',
      ],
      [
        'an archive and a page',
        Buffer.concat([Buffer.from('PK\x03\x04'), Buffer.from(`<html>${script}`)]),
        'application/zip',
      ],
    ]
    for (const [what, bytes, media_type] of polyglots) {
      const { status, body } = await upload(bytes)
      assert.deepEqual([status, body.media_type], [201, media_type], what)
      const content = await fetch(new URL(`${project}/files/${body.id}/content`, test.url), {
        headers: { 'x-api-key': test.owner.api_key },
      })
      assert.ok(Buffer.from(await content.arrayBuffer()).equals(bytes))
      const { headers } = content
      assert.equal(headers.get('x-content-type-options'), 'nosniff', what)
      assert.match(headers.get('content-security-policy')!, /sandbox/, what)
      if (media_type !== 'image/gif') assert.match(headers.get('content-disposition')!, /^attachment/, what)
    }
  })

  it('files that decompress to far more are stored unchanged and never decompressed', async () => {
    const bomb = gzipSync(gzipSync(Buffer.alloc(200_000_000)))
    const before = process.memoryUsage().arrayBuffers
    const { status, body } = await upload(bomb)
    assert.deepEqual([status, body.media_type, body.bytes], [201, 'application/gzip', bomb.length])
    const steps = script(
      { tool_calls: [{ name: 'read_file', arguments: { file_id: body.id } }] },
      { text: '{{tool_result}}' },
    )
    assert.match((await give(steps)).body.output.content, /no text|not_text|is not text/)
    const asFile = await give([{ role: 'user', content: [{ type: 'file', file_id: body.id }] }])
    assert.deepEqual([asFile.body.status, asFile.body.error.code], ['failed', 'unsupported_input'])
    assert.ok(process.memoryUsage().arrayBuffers - before < 100_000_000)
    // A body that says it is packed is kept as it came, or refused: it is never unpacked either.
    const packed = await upload(bomb, { headers: { 'content-encoding': 'gzip' } })
    assert.ok(packed.status >= 400 || packed.body.bytes === bomb.length, JSON.stringify(packed))
  })

  it('uploads can fill the quota of a project to the last byte, and not beyond', async () => {
    const made = await test.send('POST', '/api/v1/projects', { body: { name: 'edge' } })
    const at = `/api/v1/projects/${made.body.id}`
    const put = (bytes: number) => upload(Buffer.alloc(bytes, 'x'), { at })
    const first = await put(quota - 1_500_000)
    assert.deepEqual([first.status, (await put(1_500_001)).status], [201, 429])
    assert.equal((await put(1_500_000)).status, 201)
    const over = await put(1)
    assert.deepEqual([over.status, over.body.error.code, over.body.error.details.used], [429, 'quota_exceeded', quota])
    assert.equal((await test.send('DELETE', `${at}/files/${first.body.id}`)).status, 200)
    assert.equal((await put(quota - 1_500_000)).status, 201)
  })
})
