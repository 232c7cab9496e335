import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { localUrl, sender, startTestService, type TestService } from '../../../test/harness.ts'
import { shareTestService } from '../../../test/shared-service.ts'

let test: TestService
before(async () => {
  test = await shareTestService()
})
after(() => test.stop())

describe('hello (decision D101)', () => {
  const hello = (name?: string) =>
    test.send('GET', `/api/v1/hello${name === undefined ? '' : `?name=${encodeURIComponent(name)}`}`)

  it('hello greets the world, or the given name unchanged', async () => {
    assert.deepEqual((await hello()).body, { message: 'Hello, World!' })
    for (const name of [
      'Ada',
      ' ',
      'ä😀',
      '<script>alert(1)</script>',
      '"\\\r\n',
      '${x} {{y}} %s',
      '😀'.repeat(100),
      '__proto__',
      '0',
      'null',
    ]) {
      const { status, body } = await hello(name)
      assert.deepEqual([status, body], [200, { message: `Hello, ${name}!` }])
    }
  })

  it('hello limits the length of the name', async () => {
    const { status, body } = await hello('x'.repeat(101))
    assert.deepEqual([status, body.error.code, body.error.details.field], [400, 'VALIDATION_ERROR', 'name'])
  })

  it('hello needs a credential, and no scope', async () => {
    assert.equal((await test.send('GET', '/api/v1/hello', { key: null })).status, 401)
  })
})

describe('status (decision D102)', () => {
  it('status is public and reports the state of the service', async () => {
    const { status, body } = await test.send('GET', '/api/v1/status', { key: null })
    assert.equal(status, 200)
    const { version, timestamp, uptime_seconds } = body
    assert.deepEqual(body, {
      status: 'operational',
      version,
      timestamp,
      uptime_seconds,
      checks: { database: 'ok', workers: 'ok', webhooks: 'ok' },
    })
    assert.match(version, /^\d+\.\d+\.\d+$/)
    assert.ok(Math.abs(Date.parse(timestamp) - Date.now()) < 60_000)
    assert.ok(Number.isInteger(uptime_seconds) && uptime_seconds >= 0 && uptime_seconds < 600)
  })

  it('status is the same with a valid or invalid credential, and is not counted', async () => {
    for (const key of [test.owner.api_key, 'wrong']) {
      const { status, headers } = await test.send('GET', '/api/v1/status', { key })
      assert.deepEqual([status, headers.get('x-ratelimit-limit')], [200, null])
    }
  })
})

describe('the document (decision D103)', () => {
  it('the document is OpenAPI 3.0.3 in JSON, whatever the request accepts, with the address of this service', async () => {
    for (const accept of ['application/json', 'text/html', '*/*', 'application/yaml', '']) {
      const { status, headers, body } = await test.send('GET', '/api/v1/docs', { key: null, headers: { accept } })
      assert.deepEqual([status, headers.get('content-type')], [200, 'application/json; charset=utf-8'])
      assert.equal(body.openapi, '3.0.3')
      assert.deepEqual(
        body.servers.map(({ url }: { url: string }) => url),
        [test.url],
      )
      assert.ok(Object.keys(body.paths).length > 20)
    }
  })

  it('the document is sent compressed to a fifth of its size or less, if the client accepts it', async () => {
    const get = async (encoding: string): Promise<{ encoding: string | null; bytes: number; text: string }> => {
      const answer = await fetch(`${test.url}/api/v1/docs`, { headers: { 'accept-encoding': encoding } })
      assert.match(answer.headers.get('vary') ?? '', /\baccept-encoding$/)
      const bytes = Number(answer.headers.get('content-length'))
      return { encoding: answer.headers.get('content-encoding'), bytes, text: await answer.text() }
    }
    const plain = await get('identity')
    const [first, again, refused] = [await get('gzip, deflate, br'), await get('gzip'), await get('gzip;q=0')]
    assert.deepEqual([plain.encoding, refused.encoding], [null, null])
    for (const { encoding, bytes, text } of [first, again]) {
      assert.deepEqual([encoding, text === plain.text], ['gzip', true])
      assert.ok(bytes > 0 && bytes <= plain.bytes / 5, `${bytes} of ${plain.bytes} bytes`)
    }
  })

  it('the document is not sent again to a client with the current ETag', async () => {
    const get = (known?: string) =>
      fetch(`${test.url}/api/v1/docs`, { headers: known === undefined ? {} : { 'if-none-match': known } })
    const first = await get()
    const tag = first.headers.get('etag') ?? ''
    await first.body?.cancel()
    assert.match(tag, /^W\/"[\w-]{22}"$/)
    for (const known of [tag, tag.slice(2), `"other", ${tag}`, '*']) {
      const { status, headers, body } = await get(known)
      assert.deepEqual([status, headers.get('etag'), body], [304, tag, null], known)
      assert.match(headers.get('x-request-id') ?? '', /^req_/)
    }
    const other = await get('"other"')
    await other.body?.cancel()
    assert.equal(other.status, 200)
  })

  it('the document has the public address of the service', async () => {
    const known = await startTestService({ CADRE_PUBLIC_URL: 'https://cadre.example.com' })
    try {
      const { headers, body } = await sender(localUrl(known), '')('GET', '/api/v1/docs', { key: null })
      assert.equal(body.servers[0].url, 'https://cadre.example.com')
      assert.equal(headers.get('strict-transport-security'), 'max-age=31536000')
    } finally {
      await known.stop()
    }
  })
})

describe('probes', () => {
  it('probes report to any client that the process is alive and ready', async () => {
    for (const path of ['/livez', '/readyz']) {
      const { status, body } = await test.send('GET', path, { key: null })
      assert.deepEqual([status, body], [200, { status: 'ok' }])
    }
  })
})
