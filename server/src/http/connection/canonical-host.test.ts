import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { startTestService, type TestService } from '../../../test/harness.ts'
import { rawSend } from '../../../test/raw-http.ts'

let test: TestService
before(async () => {
  test = await startTestService({ CADRE_PUBLIC_URL: '' })
})
after(() => test.stop())

describe('another name of this machine', () => {
  const at = (path: string, name: string) =>
    rawSend(test.url, { method: 'GET', path, headers: { host: `${name}:${new URL(test.url).port}` } })

  it('a browser at another name of this machine is redirected to the same path of the public URL', async () => {
    for (const path of ['/login', '/oauth2/authorize?client_id=x&state=y', '/docs', '/']) {
      const { status, headers } = await at(path, 'localhost')
      assert.deepEqual([status, headers.location], [303, `${test.url}${path}`])
    }
  })

  it('a browser at the public name, and a request for anything but a page, is not redirected', async () => {
    assert.equal((await at('/login', '127.0.0.1')).status, 200)
    assert.equal((await at('/api/v1/status', 'localhost')).status, 200)
  })

  it('a request with a Host of another machine is not redirected', async () => {
    assert.equal((await at('/login', 'evil.example')).status, 200)
  })
})
