import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { type TestService } from '../../../test/harness.ts'
import { shareTestService } from '../../../test/shared-service.ts'

let test: TestService
before(async () => {
  test = await shareTestService()
})
after(() => test.stop())

const get = (path: string, headers: Record<string, string> = {}) => test.send('GET', path, { key: null, headers })

describe('the reference page', () => {
  it('the reference page loads every script from the service itself', async () => {
    const page = await get('/docs')
    assert.equal(page.status, 200)
    assert.match(page.headers.get('content-security-policy') ?? '', /script-src 'self';/)
    const scripts = [...String(page.body).matchAll(/<script([^>]*)>([^<]*)/g)]
    assert.equal(scripts.length, 2)
    for (const [, attributes = '', inside] of scripts) {
      const path = / src="(\/[^"/][^"]*)"/.exec(attributes)?.[1]
      assert.ok(path, 'a script comes from this origin')
      assert.equal(inside, '')
      const { status, headers } = await get(path)
      assert.deepEqual([status, headers.get('content-type')], [200, 'text/javascript; charset=utf-8'])
    }
  })

  it('the script of the reference page contains the renderer, and browsers cache it', async () => {
    const { body, headers } = await get('/docs/scalar.js')
    assert.match(String(body), /createApiReference/)
    const etag = headers.get('etag')
    assert.ok(etag)
    const sent = await fetch(`${test.url}/docs/scalar.js`, { headers: { 'accept-encoding': 'gzip' } })
    const bytes = Number(sent.headers.get('content-length'))
    assert.deepEqual([sent.headers.get('content-encoding'), await sent.text()], ['gzip', String(body)])
    assert.ok(bytes > 0 && bytes <= String(body).length / 2, `${bytes} bytes`)
    const again = await get('/docs/scalar.js', { 'if-none-match': etag })
    assert.deepEqual([again.status, again.body], [304, ''])
  })

  it('a visitor of the root path is redirected to the reference page', async () => {
    const { status, headers } = await get('/')
    assert.deepEqual([status, headers.get('location')], [303, '/docs'])
  })
})
