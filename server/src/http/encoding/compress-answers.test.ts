import assert from 'node:assert/strict'
import { request } from 'node:http'
import { after, before, describe, it } from 'node:test'
import { gunzipSync } from 'node:zlib'
import { createAgent, createProject } from '../../../test/fixtures.ts'
import { localUrl, type TestService } from '../../../test/harness.ts'
import { shareTestService } from '../../../test/shared-service.ts'
import { compressedMin_characters } from './compress-answers.ts'

interface Answer {
  headers: Record<string, string | string[] | undefined>
  body: Buffer
}

describe('large responses', () => {
  let test: TestService
  let tasks: string
  let agent: string
  before(async () => {
    test = await shareTestService()
    const { path } = await createProject(test.send, 'large')
    const system_prompt = 'x'.repeat(compressedMin_characters)
    agent = `${path}/agents/${(await createAgent(test.send, path, { name: 'a', config: { model: 'builtin/echo', system_prompt } })).id}`
    tasks = `${path}/tasks`
    const made = await test.send('POST', `${agent}/tasks?wait=30`, {
      body: { input: 'ä long input '.repeat(compressedMin_characters / 10) },
    })
    assert.equal(made.body.status, 'completed', JSON.stringify(made.body).slice(0, 300))
  })
  after(() => test.stop())

  /** The bytes on the wire, which `fetch` would decompress. */
  const get = (path: string, accepted?: string, method = 'GET'): Promise<Answer> =>
    new Promise((resolve, reject) => {
      const headers = { 'x-api-key': test.owner.api_key, ...(accepted ? { 'accept-encoding': accepted } : {}) }
      request(new URL(path, localUrl(test)), { method, headers }, (answer) => {
        const chunks: Buffer[] = []
        answer.on('data', (chunk: Buffer) => chunks.push(chunk))
        answer.on('end', () => resolve({ headers: answer.headers, body: Buffer.concat(chunks) }))
      })
        .on('error', reject)
        .end()
    })

  it('a large response is compressed for clients that accept it, and has Vary', async () => {
    const plain = await get(tasks)
    const zipped = await get(tasks, 'br, gzip')
    assert.deepEqual(gunzipSync(zipped.body), plain.body)
    assert.ok(plain.body.length > compressedMin_characters && zipped.body.length < plain.body.length / 10)
    for (const { headers, body } of [plain, zipped]) {
      assert.equal(headers['content-length'], String(body.length))
      assert.match(String(headers['vary']), /accept-encoding/)
    }
    assert.deepEqual(
      [plain, zipped].map(({ headers }) => headers['content-encoding']),
      [undefined, 'gzip'],
    )
  })

  for (const [accepted, encoding] of [
    ['gzip;q=0', undefined],
    ['identity, gzip; q=0.000', undefined],
    ['gzip;q=0, *', undefined],
    ['gzipped', undefined],
    ['GZIP ; q=0.001', 'gzip'],
    ['identity;q=0.5, *', 'gzip'],
  ] as const)
    it(`a client that sends Accept-Encoding: ${accepted} is answered ${encoding ? 'compressed' : 'plainly'}`, async () => {
      assert.equal((await get(tasks, accepted)).headers['content-encoding'], encoding)
    })

  it('a response that is short, has no body or has a strong ETag is not compressed', async () => {
    const short = await get('/api/v1/hello', 'gzip')
    const head = await get(tasks, 'gzip', 'HEAD')
    const tagged = await get(agent, 'gzip')
    assert.match(String(tagged.headers['etag']), /^"/)
    assert.ok(tagged.body.length > compressedMin_characters)
    for (const { headers } of [short, head, tagged]) assert.equal(headers['content-encoding'], undefined)
    assert.equal(short.headers['vary'], undefined)
  })
})
