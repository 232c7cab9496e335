// test: own process (its documents are served with a certificate that the whole process trusts)
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type Server } from 'node:https'
import type { AddressInfo } from 'node:net'
import { after, before, beforeEach, describe, it } from 'node:test'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import { startTestService, type TestService } from '../../../test/harness.ts'
import { makeCertificate } from '../../../test/fakes/certificate.ts'
import { makeSession, ownerOf } from '../../../test/actors.ts'
import { Browser } from '../../../test/browser.ts'
import { OAuthDriver, type TestClient } from '../../../test/oauth.ts'
import { isDocumentAddress, readClientDocument } from './client-documents.ts'

let service: TestService
let driver: OAuthDriver
let documents: Server
let host: string
/** What the server of documents answers. */
let served: { status?: number; headers?: Record<string, string>; body?: string; document?: object }
let reads: number

const verifier = 'v'.repeat(43)
/** Base64url of the SHA-256 of it. */
const code_challenge = Buffer.from(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(verifier))).toString(
  'base64url',
)
const pkce = { code_challenge, code_challenge_method: 'S256' }
const redirect_uri = 'http://127.0.0.1:4711/callback'

before(async () => {
  const { key, cert } = makeCertificate('localhost')
  setDefaultCACertificates([...getCACertificates('default'), cert])
  documents = createServer({ key, cert }, (_request, response) => {
    reads++
    const { status = 200, headers = { 'content-type': 'application/json' }, body, document } = served
    response.writeHead(status, headers).end(body ?? JSON.stringify(document))
  }).listen(0, 'localhost')
  await once(documents, 'listening')
  host = `localhost:${(documents.address() as AddressInfo).port}`
  service = await startTestService({ CADRE_EGRESS_ALLOW: 'loopback' })
  driver = new OAuthDriver(service)
})
after(async () => {
  documents.closeAllConnections()
  documents.close()
  await service.stop()
})
beforeEach(() => {
  reads = 0
})

/** An app whose document is at a path of the server, and which says `changes` there. */
function serve(path: string, changes: object = {}): TestClient {
  const client_id = `https://${host}${path}`
  served = {
    document: {
      client_id,
      client_name: 'Code Helper',
      client_uri: `https://${host}`,
      redirect_uris: ['http://127.0.0.1/callback', 'https://app.example.com/cb', 'helper://callback'],
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
      token_endpoint_auth_method: 'none',
      ...changes,
    },
  }
  return { client_id, client_secret: '', redirect_uri }
}

const mcp = (): string => `${service.url}/mcp`

async function refusal(client: TestClient, changes: Record<string, string> = {}): Promise<string> {
  const response = await driver.ask(client, { scope: undefined, resource: mcp(), ...pkce, ...changes })
  assert.equal(response.status, 400)
  assert.equal(response.headers.get('location'), null)
  const body = (await response.json()) as { error: string; error_description: string }
  assert.match(body.error, /^invalid_/)
  return body.error_description
}

async function consentPageOf(client: TestClient, changes: Record<string, string> = {}): Promise<string> {
  const browser = new Browser(service.url)
  const { email, password } = service.owner
  const url = driver.authorizeUrl(client, { scope: undefined, resource: mcp(), ...pkce, ...changes })
  const login = await browser.follow(await browser.get(url))
  return (await browser.follow(await browser.submit(login, '/login', { email, password }))).html
}

/** The cookie of a session of the owner's, as a header. */
async function signIn(): Promise<string> {
  return (await makeSession(service, ownerOf(service))).cookie
}

describe('an app whose client_id is the address of its metadata document', () => {
  it('an app whose client_id is the address of its metadata document gets tokens for /mcp with PKCE, any loopback port and no registration, and refreshes them', async () => {
    const metadata = (await service.send('GET', '/.well-known/oauth-authorization-server', { key: null })).body
    assert.equal(metadata.client_id_metadata_document_supported, true)
    assert.ok(metadata.token_endpoint_auth_methods_supported.includes('none'))
    const client = serve('/apps/code-helper.json')
    const code = await driver.code(client, { scope: undefined, resource: mcp(), ...pkce })
    const { status, body } = await driver.exchange(client, code, { code_verifier: verifier })
    assert.equal(status, 200, JSON.stringify(body))
    assert.equal(body.scope, 'agents:read tasks:write')
    const list = { jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} }
    const headers = { accept: 'application/json, text/event-stream' }
    const asked = await service.send('POST', '/mcp', { token: body.access_token, body: list, headers })
    assert.equal(asked.status, 200)
    assert.equal(await driver.statusOf(body.access_token), 401)
    const refreshed = await driver.refresh(client, body.refresh_token)
    assert.equal(refreshed.status, 200)
    // The document was read once, for the authorization; nothing of the token endpoint waits for it.
    assert.equal(reads, 1)
    const granted = (await service.send('GET', '/api/v1/auth/sessions', { cookie: await signIn() })).body
    const app = granted.sessions.map((session: { app: unknown }) => session.app).find(Boolean)
    assert.deepEqual([app.client_id, app.name, app.resource], [client.client_id, 'Code Helper', mcp()])
  })

  it('an app whose client_id is the address of its metadata document is read again only after its cache time, with its new content', async () => {
    const client = serve('/fresh.json')
    for (let times = 0; times < 3; times++)
      assert.equal((await driver.ask(client, { scope: undefined, resource: mcp(), ...pkce })).status, 303)
    assert.equal(reads, 1)
    serve('/fresh.json', { redirect_uris: ['https://app.example.com/cb'] })
    await service.sql`update oauth_client set document_until = now() where client_id = ${client.client_id}`
    assert.match(await refusal(client), /redirect_uri/)
    assert.equal(reads, 2)
    served = { status: 404, body: 'gone' }
    await service.sql`update oauth_client set document_until = now() where client_id = ${client.client_id}`
    assert.match(await refusal(client), /status 404/)
  })

  it('concurrent requests of an app share one read of its metadata document', async () => {
    const client = serve('/at-once.json')
    const answers = await Promise.all(
      Array.from({ length: 8 }, () => driver.ask(client, { scope: undefined, resource: mcp(), ...pkce })),
    )
    assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([303]))
    assert.equal(reads, 1)
  })

  it('an app whose client_id is the address of its metadata document is shown with its host and as not registered, whatever its name', async () => {
    const page = await consentPageOf(serve('/spoof.json', { client_name: 'Cadre <b>Console</b>' }))
    assert.match(page, /Allow Cadre &lt;b&gt;Console&lt;\/b&gt;\?/)
    assert.ok(page.includes(`The app of ${host} asks for access`))
    assert.match(page, /This app is not registered here\./)
    assert.match(page, new RegExp(`Publisher</dt><dd>${host} \\(unverified\\)`))
    assert.match(page, /This app runs on your own machine\./)
    const other = serve('/spoof.json')
    const elsewhere = await consentPageOf(
      { ...other, redirect_uri: 'https://app.example.com/cb' },
      { redirect_uri: 'https://app.example.com/cb' },
    )
    assert.match(elsewhere, /goes to another host: <strong>app\.example\.com<\/strong>/)
  })

  it('an app whose client_id is the address of its metadata document never gets the scope admin', async () => {
    const answer = await driver.ask(serve('/admin.json'), { scope: 'admin', resource: mcp(), ...pkce })
    assert.equal(new URL(answer.headers.get('location')!).searchParams.get('error'), 'invalid_scope')
  })

  it('an app whose client_id is the address of its metadata document must use PKCE', async () => {
    const answer = await driver.ask(serve('/no-pkce.json'), { scope: undefined, resource: mcp() })
    assert.match(new URL(answer.headers.get('location')!).searchParams.get('error_description')!, /PKCE/)
  })

  it('an app whose client_id is the address of its metadata document is refused for a redirect URI that its document does not list, and for one of a private scheme', async () => {
    const client = serve('/redirects.json')
    for (const uri of [
      'https://evil.example/cb',
      'https://app.example.com/cb/',
      'helper://callback',
      'http://127.0.0.1:1/other',
    ])
      assert.match(await refusal(client, { redirect_uri: uri }), /redirect_uri/, uri)
  })

  it('an app with an invalid metadata document is refused with the reason, and nothing of it is stored', async () => {
    const cases: [string, typeof served | object, RegExp][] = [
      ['/mismatch.json', { client_id: 'https://good.example/app.json' }, /differs from the URL/],
      ['/secret.json', { client_secret: 'x' }, /client_secret/],
      ['/basic.json', { token_endpoint_auth_method: 'client_secret_basic' }, /must be none/],
      ['/implicit.json', { response_types: ['token'] }, /response_types must include code/],
      ['/grants.json', { grant_types: ['implicit'] }, /grant_types must include authorization_code/],
      ['/none.json', { redirect_uris: ['helper://cb', 'http://good.example/cb'] }, /no redirect_uris/],
      ['/many.json', { redirect_uris: Array.from({ length: 31 }, (_, n) => `https://a.example/${n}`) }, /at most 30/],
      ['/wrong.json', { redirect_uris: 'https://a.example/' }, /redirect_uris must be a list/],
      ['/bidi.json', { client_name: 'Cadre\u202eelosnoC' }, /client_name/],
      ['/long.json', { client_name: 'n'.repeat(101) }, /client_name/],
    ]
    for (const [path, changes, reason] of cases) assert.match(await refusal(serve(path, changes)), reason, path)
    const answers: [string, typeof served, RegExp][] = [
      ['/large.json', { body: JSON.stringify({ padding: 'x'.repeat(6000) }) }, /longer than 5120 bytes/],
      ['/text.json', { headers: { 'content-type': 'text/plain' }, body: '{}' }, /application\/json/],
      ['/broken.json', { body: '{' }, /not JSON/],
      ['/list.json', { body: '[]' }, /not a JSON object/],
      ['/moved.json', { status: 302, headers: { location: `https://${host}/list.json` }, body: '' }, /status 302/],
      ['/fault.json', { status: 500, body: '' }, /status 500/],
    ]
    for (const [path, answer, reason] of answers) {
      const client = serve(path)
      served = answer
      assert.match(await refusal(client), reason, path)
    }
    const kept =
      await service.sql`select 1 from oauth_client where client_id like ${'%/list.json'} or client_id like ${'%/large.json'}`
    assert.equal(kept.length, 0)
    const page = await fetch(
      driver.authorizeUrl(serve('/list.json', { client_id: 1 }), { scope: undefined, resource: mcp() }),
      {
        headers: { accept: 'text/html' },
        redirect: 'manual',
      },
    )
    assert.equal(page.status, 400)
    assert.match(await page.text(), /The app that sent you here is not accepted/)
  })

  it('an app whose client_id is the address of its metadata document is never fetched from an address that the egress rules forbid', async () => {
    const guarded = await startTestService()
    try {
      const guardedDriver = new OAuthDriver(guarded)
      for (const client_id of [
        `https://${host}/app.json`,
        `https://127.0.0.1:${new URL(`https://${host}`).port}/app.json`,
        'https://169.254.169.254/latest/meta-data',
        'https://[::1]:8443/app.json',
        'https://10.0.0.1/app.json',
        'https://a.example:22/app.json',
      ]) {
        const answer = await guardedDriver.ask(
          { client_id, client_secret: '', redirect_uri },
          { scope: undefined, resource: `${guarded.url}/mcp`, ...pkce },
        )
        assert.equal(answer.status, 400, client_id)
        assert.match(((await answer.json()) as any).error_description, /refused/, client_id)
      }
      assert.equal(reads, 0)
    } finally {
      await guarded.stop()
    }
  })

  it('an app whose client_id is the address of its metadata document has access only while the organization allows it', async () => {
    const client = serve('/switch.json')
    const code = await driver.code(client, { scope: undefined, resource: mcp(), ...pkce })
    const { body: tokens } = await driver.exchange(client, code, { code_verifier: verifier })
    const path = '/api/v1/auth/organization'
    const { status, body } = await service.send('PUT', path, { body: { client_documents: false } })
    assert.deepEqual([status, body.client_documents], [200, false])
    try {
      const list = { jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} }
      assert.equal((await service.send('POST', '/mcp', { token: tokens.access_token, body: list })).status, 401)
      assert.equal((await driver.refresh(client, tokens.refresh_token)).status, 400)
      assert.match(await consentPageOf(client), /only apps that an administrator has registered/)
    } finally {
      await service.send('PUT', path, { body: { client_documents: true } })
    }
  })

  it('apps with a metadata document are removed to make room for newer ones, except those with a consent', async () => {
    await service.sql`
      insert into oauth_client (client_id, name, redirect_uris, scopes, document_until)
      select 'https://many.example/' || n, 'n', '{https://many.example/cb}', '{read}', now() + make_interval(secs => n)
      from generate_series(1, 1200) n`
    assert.equal((await driver.ask(serve('/room.json'), { scope: undefined, resource: mcp(), ...pkce })).status, 303)
    const [{ left }] = (await service.sql<{ left: number }>`
      select count(*)::int as left from oauth_client where client_id like 'https://many.example/%'`) as [
      { left: number },
    ]
    assert.ok(left <= 1000, String(left))
    await service.sql`delete from oauth_client where client_id like 'https://many.example/%'`
  })
})

it('the address of a metadata document is https with a path, in normal form', () => {
  for (const address of ['https://a.example/app.json', 'https://a.example:8443/x?v=1'])
    assert.ok(isDocumentAddress(address), address)
  for (const address of [
    'http://a.example/app.json',
    'https://a.example',
    'https://a.example/',
    'https://a.example/app.json#x',
    'https://user@a.example/app.json',
    'https://a.example/x/../app.json',
    'https://a.example/%2e%2e/app.json',
    'https://A.example/app.json',
    'https://a.example:443/app.json',
    'https://a.example/a b',
    'https://a.example/<b>',
    `https://a.example/${'x'.repeat(600)}`,
  ])
    assert.ok(!isDocumentAddress(address), address)
})

it('a metadata document without a name gets the name of its host, and unknown scopes are ignored', () => {
  const client_id = 'https://a.example/app.json'
  const document = { client_id, redirect_uris: ['https://a.example/cb'], scope: 'agents:read admin made-up' }
  assert.deepEqual(readClientDocument(client_id, document), {
    name: 'a.example',
    redirect_uris: ['https://a.example/cb'],
    scopes: ['agents:read'],
    native: false,
  })
})
