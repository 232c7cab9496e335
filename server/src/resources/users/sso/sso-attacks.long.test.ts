import assert from 'node:assert/strict'
import { createHmac, generateKeyPairSync } from 'node:crypto'
import type { RequestListener } from 'node:http'
import { after, afterEach, before, beforeEach, describe, it } from 'node:test'
import { Browser, type BrowserPage } from '../../../../test/browser.ts'
import { startTestService, type TestService } from '../../../../test/harness.ts'
import {
  client,
  IdentityProvider,
  signInWith,
  ssoEnvironment,
  unsigned,
  type IdToken,
  type ProviderFaults,
  type SsoJourney,
} from '../../../../test/fakes/identity-provider.ts'
import { startLocalServer, type LocalServer } from '../../../../test/fakes/local-server.ts'
import { makeEgress } from '../../../platform/egress/safe-fetch.ts'
import { makeSsoClient } from './sso-client.ts'
import { SsoFailure } from './sso-failure.ts'

let service: TestService
let provider: IdentityProvider
let other: IdentityProvider
/** A provider whose metadata the service has never read. */
let fresh: IdentityProvider

before(async () => {
  provider = await IdentityProvider.start()
  other = await IdentityProvider.start()
  fresh = await IdentityProvider.start()
  // Sign-up is open, so that only the attack can prevent a sign-in.
  const env = ssoEnvironment({ okta: { provider }, other: { provider: other }, fresh: { provider: fresh } })
  service = await startTestService({ CADRE_SIGNUP: 'open', ...env })
  // Both have been used.
  for (const [name, one] of Object.entries({ okta: provider, other })) {
    one.person = { sub: `known-${name}`, email: `known-${name}@example.com`, email_verified: true, name: 'Known' }
    assert.equal((await signInWith(service, name, one)).answer.status, 303)
  }
})
after(async () => {
  await service.stop()
  for (const one of [provider, other, fresh]) await one.stop()
})

let before_attack: unknown
const counted = async () =>
  service.sql`
    select (select count(*) from app_user) as users, (select count(*) from identity) as identities,
      (select count(*) from session) as sessions, (select count(*) from organization) as organizations,
      (select max(last_sign_in_at) from identity) as last`
beforeEach(async () => {
  for (const one of [provider, other, fresh]) {
    one.faults = {}
    one.person = { sub: 'mallory', email: 'mallory@example.com', email_verified: true, name: 'Mallory' }
  }
  before_attack = await counted()
})
afterEach(async () => assert.deepEqual(await counted(), before_attack, 'nothing was made, linked or begun'))

/** Holds an answer to what every refusal is: told on a page, without a session, and the attempt is over. */
function assertRefused({ status, headers, html }: BrowserPage, wanted: number, browser: Browser, text?: RegExp): void {
  assert.equal(status, wanted, html.slice(html.indexOf('<main')))
  assert.match(headers.get('content-type') ?? '', /^text\/html/)
  assert.match(html, /role="alert"/)
  if (text) assert.match(html, text)
  assert.equal(browser.cookie('cadre_session'), undefined)
  assert.equal(browser.cookie('cadre_sso_okta'), undefined)
}

/** Goes wrong as `faults` and `journey` say: it is refused, and because of that. */
async function attack(
  [wanted, why]: [status: number, why: RegExp],
  faults: ProviderFaults,
  journey: SsoJourney = {},
): Promise<void> {
  assert.match(await whyNot(faults, journey), why)
  const { browser, answer, callback } = await signInWith(service, 'okta', provider, journey)
  assertRefused(answer, wanted, browser)
  // Nor by trying again with the same.
  provider.faults = {}
  assertRefused(await browser.get(callback.href), 400, browser)
}

/** Why the client of providers refuses it, as it goes to the log: without anything that is secret. */
async function whyNot(faults: ProviderFaults, { change }: SsoJourney): Promise<string> {
  provider.faults = faults
  const sso = makeSsoClient(makeEgress({ allow: [new URL(provider.issuer).host] }))
  const config = service.service.context.config.sso.find(({ name }) => name === 'okta')!
  const redirect_uri = `${service.url}/api/v1/auth/sso/okta/callback`
  const { url, checks } = await sso.begin(config, redirect_uri)
  const callback = await provider.approve(url)
  const code = callback.searchParams.get('code') ?? 'no code'
  change?.(callback)
  try {
    await sso.finish(config, redirect_uri, callback.search, checks)
  } catch (error) {
    if (!(error instanceof SsoFailure)) throw error
    for (const secret of [code, client.secret, 'eyJ', ...Object.values(checks)])
      assert.ok(!error.message.includes(secret), error.message)
    return `${error.reason}: ${error.message}`
  }
  return assert.fail('it was believed')
}

const now = Math.floor(Date.now() / 1000)
const claims =
  (changes: Record<string, unknown>) =>
  ({ header, claims }: IdToken): IdToken => ({ header, claims: { ...claims, ...changes } })
const without =
  (name: string) =>
  ({ header, claims: { [name]: _, ...claims } }: IdToken): IdToken => ({ header, claims })
const foreignKey = () => generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey.export({ format: 'jwk' })
const encode = (part: object): string => Buffer.from(JSON.stringify(part)).toString('base64url')

describe('an ID token is refused', () => {
  const profile = { email: 'mallory@example.com', email_verified: true, name: 'Mallory' }
  const tokens: Record<string, [why: RegExp, ProviderFaults]> = {
    'with another nonce': [/"nonce" claim value/, { id_token: claims({ nonce: 'the-nonce-of-another' }) }],
    'without a nonce': [/claim missing/, { id_token: without('nonce') }],
    'that another key signed': [/signature verification failed/, { foreign_key: true }],
    'that a key signed which it brings along': [
      /signature verification failed/,
      { foreign_key: true, id_token: ({ header, claims }) => ({ header: { ...header, jwk: foreignKey() }, claims }) },
    ],
    'whose key is not published': [
      /no applicable keys/,
      { id_token: ({ header, claims }) => ({ header: { ...header, kid: 'unknown' }, claims }) },
    ],
    'without a signature': [/"alg" header/, { id_token: unsigned }],
    'whose claims were changed after it was signed': [
      /signature verification failed/,
      {
        id_token: ({ header, claims }) =>
          `${encode(header)}.${encode({ ...claims, sub: 'known-okta' })}.${'A'.repeat(86)}`,
      },
    ],
    'signed with our secret, which is no key of the provider': [
      /"alg" header/,
      {
        id_token: ({ header, claims }) => {
          const text = `${encode({ ...header, alg: 'HS256' })}.${encode(claims)}`
          return `${text}.${createHmac('sha256', client.secret).update(text).digest('base64url')}`
        },
      },
    ],
    'that has expired': [/"exp"/, { id_token: claims({ exp: now - 3600, iat: now - 7200 }) }],
    'that counts in the future only': [/"nbf"/, { id_token: claims({ nbf: now + 3600 }) }],
    'for another client': [/"aud"/, { id_token: claims({ aud: 'another-client' }) }],
    'for another client too': [/"aud"/, { id_token: claims({ aud: [client.id, 'another-client'] }) }],
    'that was given to another client': [
      /"azp"/,
      { id_token: claims({ aud: [client.id, 'another-client'], azp: 'another-client' }) },
    ],
    'of another issuer': [/"iss"/, { id_token: claims({ iss: 'https://id.example.com' }) }],
    'without an issuer': [/"iss"/, { id_token: without('iss') }],
    'without an end': [/"exp"/, { id_token: without('exp') }],
    'without a subject': [/"sub"/, { id_token: without('sub') }],
    'with a number as its subject': [/"sub"/, { id_token: claims({ sub: 42 }) }],
    'with an empty subject': [/the subject or issuer is empty/, { id_token: claims({ ...profile, sub: '' }) }],
    'with a subject that is too long': [
      /the subject or issuer is empty/,
      { id_token: claims({ ...profile, sub: 'x'.repeat(256) }) },
    ],
    'with a subject that cannot be kept': [
      /the subject or issuer is empty/,
      { id_token: claims({ ...profile, sub: 'a\u0000b' }) },
    ],
    'with another subject than the userinfo': [/"sub" property/, { id_token: claims({ sub: 'known-okta' }) }],
    'that is missing': [/"id_token" property/, { id_token: () => undefined }],
    'that is no JWT': [/failed to parse JWT/, { id_token: () => 'not.a.token' }],
    'that is not even text': [/"id_token" property/, { id_token: () => 42 as never }],
  }
  for (const [what, [why, faults]] of Object.entries(tokens))
    it(`an ID token ${what} is refused`, () => attack([502, why], faults))
})

describe('a provider that answers rubbish signs no one in', () => {
  const json =
    (status: number, body: unknown): RequestListener =>
    (_request, response) =>
      void response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
  const text =
    (status: number, body: string, type = 'application/json'): RequestListener =>
    (_request, response) =>
      void response.writeHead(status, { 'content-type': type }).end(body)
  const endless: RequestListener = (_request, response) => {
    response.writeHead(200, { 'content-type': 'application/json' })
    const write = (): void => void (response.destroyed || response.write('x'.repeat(16_384), () => setImmediate(write)))
    write()
  }
  const answers: Record<string, [why: RegExp, RequestListener]> = {
    'an unexpected error': [/unexpected HTTP response status code/, text(500, 'oh no', 'text/html')],
    'an error in JSON': [
      /invalid_grant|status code/,
      json(400, { error: 'invalid_grant', error_description: 'spent' }),
    ],
    'a page': [/content-type/, text(200, '<!doctype html>', 'text/html')],
    'JSON that is cut': [/as JSON$/, text(200, '{"access_token": "secret"')],
    'nothing at all': [/as JSON$/, text(200, '')],
    'a list': [/top level object/, json(200, [])],
    null: [/top level object/, json(200, null)],
    'an empty object': [/"(access_token|keys|sub)" property/, json(200, {})],
    'more than is read': [/answer_too_large/, text(200, `{"access_token":"${'x'.repeat(200_000)}"}`)],
    'a body without end': [/answer_too_large/, endless],
    'a closed connection': [/connection_lost/, (request) => request.socket.destroy()],
  }
  for (const path of ['/token', '/jwks', '/me']) {
    for (const [what, [why, answer]] of Object.entries(answers))
      it(`a sign-in is refused if the provider answers ${path} with ${what}`, () =>
        attack([502, why], { answers: { [path]: answer } }))
  }
  it('a sign-in is refused if the provider publishes no keys', () =>
    attack([502, /no applicable keys/], { answers: { '/jwks': json(200, { keys: [] }) } }))
  it('a sign-in is refused if the provider returns no access token', () =>
    attack([502, /"access_token"/], { answers: { '/token': json(200, { id_token: 'x' }) } }))
})

describe('what the browser brings back is refused', () => {
  const change = (work: (params: URLSearchParams) => void): SsoJourney => ({
    change: ({ searchParams }) => work(searchParams),
  })
  const changes: Record<string, [why: RegExp, SsoJourney]> = {
    'with another state': [/"state"/, change((params) => params.set('state', 'the-state-of-another'))],
    'without a state': [/"state" missing/, change((params) => params.delete('state'))],
    'with two states': [/"state" parameter/, change((params) => params.append('state', 'another'))],
    'from another issuer (mix-up)': [/"iss"/, change((params) => params.set('iss', other.issuer))],
    'without an issuer, which the provider promises to name': [/"iss"/, change((params) => params.delete('iss'))],
    'without a code': [/no authorization code/, change((params) => params.delete('code'))],
    'with two codes': [/"code" parameter/, change((params) => params.append('code', 'another'))],
    'with an ID token in the query': [/hybrid/, change((params) => params.set('id_token', 'x.y.z'))],
    'as a signed response that was not asked for': [/JARM/, change((params) => params.set('response', 'x.y.z'))],
    'with an error, but another state': [
      /"state"/,
      change((params) => {
        params.set('error', 'access_denied')
        params.set('state', 'the-state-of-another')
      }),
    ],
  }
  for (const [what, [why, journey]] of Object.entries(changes))
    it(`a callback ${what} is refused`, () => attack([400, new RegExp(`^mismatch: .*${why.source}`)], {}, journey))

  it('a callback with a code that the provider never issued is refused', () =>
    attack(
      [502, /invalid_grant/],
      {},
      change((params) => params.set('code', 'made-up')),
    ))

  it('a callback is refused in a browser that began no sign-in', async () => {
    const stranger = new Browser(service.url)
    const { callback } = await prepared()
    assertRefused(await stranger.get(callback.href), 400, stranger, /Start again/)
  })

  it('a callback is refused in a browser that began another sign-in', async () => {
    const { callback } = await prepared()
    const victim = await prepared()
    // The attacker's own answer, in the victim's browser: it would sign the victim in as the attacker.
    assertRefused(await victim.browser.get(callback.href), 400, victim.browser)
  })

  it('a callback with a changed cookie is refused', async () => {
    const { browser, callback } = await prepared()
    const cookie = browser.cookies.find(({ name }) => name === 'cadre_sso_okta')!
    cookie.value = `${cookie.value.slice(0, 60)}${cookie.value[60] === 'A' ? 'B' : 'A'}${cookie.value.slice(61)}`
    assertRefused(await browser.get(callback.href), 400, browser)
  })

  it('a code of one provider is refused at the callback of another (mix-up)', async () => {
    const { browser, callback } = await prepared()
    const elsewhere = new URL(callback.href.replace('/sso/okta/', '/sso/other/'))
    assertRefused(await browser.get(elsewhere.href), 400, new Browser(service.url))
    // Not with the attempt of the one under the name of the other.
    const cookie = browser.cookies.find(({ name }) => name === 'cadre_sso_okta')!
    browser.cookies.push({ ...cookie, name: 'cadre_sso_other' })
    assertRefused(await browser.get(elsewhere.href), 400, new Browser(service.url))
    assert.ok(!other.requests.slice(-2).includes('POST /token'), 'the code was sent to no provider')
  })

  it('a code of one provider is refused at another, also if neither sends its issuer (mix-up)', async (t) => {
    const [honest, evil] = await Promise.all([IdentityProvider.start(), IdentityProvider.start()])
    for (const one of [honest, evil])
      one.faults = {
        metadata: ({ authorization_response_iss_parameter_supported: _, ...metadata }) => metadata,
      }
    const providers = { honest: { provider: honest }, evil: { provider: evil } }
    const both = await startTestService({ CADRE_SIGNUP: 'open', ...ssoEnvironment(providers) })
    t.after(async () => {
      await both.stop()
      await Promise.all([honest.stop(), evil.stop()])
    })
    const nameless = { change: ({ searchParams }: URL) => searchParams.delete('iss') }
    assert.equal((await signInWith(both, 'honest', honest, nameless)).answer.status, 303)
    assert.equal((await signInWith(both, 'evil', evil, nameless)).answer.status, 409, 'the address is taken')

    const asked = evil.requests.length
    const browser = new Browser(both.url)
    const { headers } = await browser.get('/api/v1/auth/sso/honest')
    const callback = await honest.approve(headers.get('location') ?? '')
    callback.searchParams.delete('iss')
    const cookie = browser.cookies.find(({ name }) => name === 'cadre_sso_honest')!
    browser.cookies.push({ ...cookie, name: 'cadre_sso_evil' })
    const answer = await browser.get(callback.href.replace('/sso/honest/', '/sso/evil/'))
    assertRefused(answer, 400, browser)
    assert.equal(evil.requests.length, asked, 'the code was sent to no provider')
  })

  it('a callback is refused as JSON for clients that accept it', async () => {
    const { callback } = await prepared()
    const { status, body } = await service.send('GET', callback.pathname + callback.search, { key: null })
    assert.deepEqual([status, body.error.code, body.error.details[0].field], [400, 'validation_error', 'state'])
  })
})

/** A browser that is about to come back. */
async function prepared(): Promise<{ browser: Browser; callback: URL }> {
  const browser = new Browser(service.url)
  const started = await browser.get('/api/v1/auth/sso/okta')
  return { browser, callback: await provider.approve(started.headers.get('location') ?? '') }
}

describe('the user, or the provider, says no', () => {
  it('a user who declines at the provider is not signed in', async () => {
    provider.faults = { declines: true }
    const { browser, answer } = await signInWith(service, 'okta', provider)
    assertRefused(answer, 403, browser, /Okta was not allowed to share your account/)
    assert.match(answer.html, /href="\/login\?return_to=%2F"/)
    const [entry] = await service.sql<{ detail: object }>`
      select detail from audit where action = 'user.sign_in_failed' order by id desc limit 1`
    assert.deepEqual(entry?.detail, { method: 'sso', provider: 'okta', reason: 'declined' })
  })

  it('a request that the provider refuses as invalid signs no user in', async () => {
    const errors = {
      change: ({ searchParams }: URL) => {
        searchParams.delete('code')
        searchParams.set('error', 'server_error')
      },
    }
    const { browser, answer } = await signInWith(service, 'okta', provider, errors)
    assertRefused(answer, 502, browser)
  })
})

describe('metadata that cannot be trusted begins nothing', () => {
  let canary: LocalServer
  const begin = async (faults: ProviderFaults, wanted = 502): Promise<void> => {
    fresh.faults = faults
    const browser = new Browser(service.url)
    const answer = await browser.get('/api/v1/auth/sso/fresh')
    assertRefused(answer, wanted, browser)
    assert.equal(browser.cookie('cadre_sso_fresh'), undefined)
    const { status, body } = await service.send('GET', '/api/v1/auth/sso/fresh', { key: null })
    assert.deepEqual([status, body.error.code], [502, 'bad_gateway'])
  }
  const instead = (answer: RequestListener): ProviderFaults => ({
    answers: { '/.well-known/openid-configuration': answer },
  })

  it('missing metadata begins no sign-in', () =>
    begin(instead((_request, response) => void response.writeHead(404).end())))
  it('metadata that is not JSON begins no sign-in', () =>
    begin(instead((_request, response) => void response.end('{'))))
  it('metadata that is too long begins no sign-in', () =>
    begin(
      instead(
        (_request, response) =>
          void response
            .writeHead(200, { 'content-type': 'application/json' })
            .end(JSON.stringify({ issuer: fresh.issuer, x: 'x'.repeat(100_000) })),
      ),
    ))
  it('metadata of another issuer begins no sign-in', () =>
    begin({ metadata: (metadata) => ({ ...metadata, issuer: other.issuer }) }))
  it('metadata of a tenant below the issuer begins no sign-in', () =>
    begin({ metadata: (metadata) => ({ ...metadata, issuer: `${fresh.issuer}/tenant` }) }))
  for (const name of ['authorization_endpoint', 'token_endpoint', 'jwks_uri', 'issuer']) {
    it(`metadata without ${name} begins no sign-in`, () =>
      begin({ metadata: ({ [name]: _, ...metadata }) => metadata }))
    it(`metadata whose ${name} is not a URL begins no sign-in`, () =>
      begin({ metadata: (metadata) => ({ ...metadata, [name]: 'file:///etc/passwd' }) }))
  }

  it('metadata behind a redirect begins no sign-in, and the redirect is not followed', async (t) => {
    canary = await startLocalServer(t)
    await begin(instead((_request, response) => void response.writeHead(302, { location: canary.url }).end()))
    assert.equal(canary.connections(), 0)
  })

  for (const name of ['token_endpoint', 'jwks_uri', 'userinfo_endpoint']) {
    it(`metadata whose ${name} is an address that the operator has not allowed begins no sign-in`, async (t) => {
      canary = await startLocalServer(t)
      // Each has separate metadata, which are cached once read.
      const evil = await IdentityProvider.start()
      t.after(() => evil.stop())
      evil.faults = { metadata: (metadata) => ({ ...metadata, [name]: `${canary.url}/evil` }) }
      const one = await startTestService({ CADRE_SIGNUP: 'open', ...ssoEnvironment({ evil: { provider: evil } }) })
      t.after(() => one.stop())
      const { browser, answer } = await signInWith(one, 'evil', evil)
      assertRefused(answer, 502, browser)
      assert.equal(canary.connections(), 0)
      const [{ users } = { users: 0 }] = await one.sql<{ users: number }>`select count(*) as users from app_user`
      assert.equal(users, 1, 'the owner alone')
    })
  }

  it('sign-in works again once the metadata is valid again', async () => {
    await begin({ metadata: () => ({}) })
    fresh.faults = {}
    const { status } = await new Browser(service.url).get('/api/v1/auth/sso/fresh')
    assert.equal(status, 303)
  })
})

describe('a provider that does not answer', () => {
  it('a sign-in ends at a timeout if the provider does not respond, before the redirect and at the callback', async (t) => {
    const hang: RequestListener = () => undefined
    const silent = await IdentityProvider.start()
    t.after(() => silent.stop())
    const one = await startTestService({ CADRE_SIGNUP: 'open', ...ssoEnvironment({ okta: { provider: silent } }) })
    t.after(() => one.stop())
    silent.faults = { answers: { '/.well-known/openid-configuration': hang } }
    const browser = new Browser(one.url)
    const [there, { browser: back, answer }] = await Promise.all([
      browser.get('/api/v1/auth/sso/okta'),
      signInAtSilent(),
    ])
    assertRefused(there, 504, browser, /did not respond in time/)
    assertRefused(answer, 504, back)

    async function signInAtSilent() {
      provider.faults = { answers: { '/token': hang } }
      return signInWith(service, 'okta', provider)
    }
  })

  it('an unreachable provider prevents neither the start nor a sign-in by password', async (t) => {
    const deleted = await IdentityProvider.start()
    const env = ssoEnvironment({ gone: { provider: deleted } })
    await deleted.stop()
    const one = await startTestService(env)
    t.after(() => one.stop())
    const { email, password } = one.owner
    const browser = new Browser(one.url)
    const page = await browser.get('/login')
    assert.match(page.html, /Continue with Gone/)
    assert.equal((await browser.submit(page, '/login', { email, password })).status, 303)
    assertRefused(await new Browser(one.url).get('/api/v1/auth/sso/gone'), 502, new Browser(one.url))
  })
})
