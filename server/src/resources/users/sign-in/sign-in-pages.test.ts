import assert from 'node:assert/strict'
import { after, before, beforeEach, test } from 'node:test'
import { Browser } from '../../../../test/browser.ts'
import { startTestService, type TestService } from '../../../../test/harness.ts'
import { OAuthDriver } from '../../../../test/oauth.ts'

const email = 'ada@example.com'
const password = 'seven grey herons'

let service: TestService

before(async () => {
  service = await startTestService({ CADRE_SIGNUP: 'open' })
  await new OAuthDriver(service).user(email, password)
})
after(() => service.stop())
beforeEach(() => service.sql`delete from login_attempt`)

const open = async (path = '/login') => {
  const browser = new Browser(service.url)
  return { browser, page: await browser.get(path) }
}

test('a user who signs in on the page goes on to the address that they asked for', async () => {
  const { browser, page } = await open('/login?return_to=/projects%3Fsort%3Dname%23top')
  const answer = await browser.submit(page, '/login', { email, password })
  assert.equal(answer.status, 303)
  assert.equal(answer.headers.get('location'), '/projects?sort=name#top')
  assert.ok(browser.cookie('cadre_session'))
  assert.equal(
    (await browser.get('/login?return_to=/projects')).headers.get('location'),
    '/projects',
    'who is signed in goes on at once',
  )
  const signedIn = await browser.get('/login')
  assert.match(signedIn.html, /You are signed in/)
  const out = await browser.submit(signedIn, '/logout', {})
  assert.equal(out.headers.get('location'), '/login')
  assert.equal(browser.cookie('cadre_session'), undefined)
  const entries = await service.sql`
    select o.action, o.actor = u.id as is_hers, o.credential_id = i.credential_id as is_same_session
    from app_user u join audit o on o.target = u.id and o.action = 'user.signed_out'
      join audit i on i.target = u.id and i.action = 'user.signed_in' and i.credential_id = o.credential_id
    where u.email = ${email}`
  assert.deepEqual(entries, [{ action: 'user.signed_out', is_hers: true, is_same_session: true }])
})

test('signing in never redirects to another site', async () => {
  for (const path of [
    'https://evil.example/',
    '//evil.example/',
    '/\\evil.example/',
    '\\\\evil.example/',
    '/\t/evil.example',
    '/%09/evil.example',
    '/\n/evil.example',
    ' //evil.example',
    '///evil.example',
    'javascript:alert(1)',
    'evil.example',
    '/..//evil.example',
    '/.//evil.example',
    '/a/..//evil.example',
    'http:evil.example',
    '/\u0000/evil.example',
    `/${'x'.repeat(3000)}`,
  ]) {
    const { browser, page } = await open(`/login?${new URLSearchParams({ return_to: path })}`)
    const answer = await browser.submit(page, '/login', { email, password })
    const onward = new URL(answer.headers.get('location') ?? '/', service.url)
    assert.equal(onward.origin, service.url, path)
    assert.ok(!(answer.headers.get('location') ?? '').startsWith('//'), path)
    const forged = await browser.post('/login', {
      token: /name="token" value="([^"]+)"/.exec(page.html)?.[1] ?? '',
      email,
      password,
      return_to: path,
    })
    assert.ok(
      forged.status === 400 || new URL(forged.headers.get('location') ?? '/', service.url).origin === service.url,
      path,
    )
    assert.ok(!(forged.headers.get('location') ?? '').startsWith('//'), path)
  }
})

test('a form of another browser, without a browser, or of another site signs no one in', async () => {
  const { browser, page } = await open()
  const token = /name="token" value="([^"]+)"/.exec(page.html)?.[1] ?? ''
  const attacker = new Browser(service.url)
  await attacker.get('/login')
  for (const [who, fields, headers] of [
    [attacker, { token }, {}],
    [new Browser(service.url), { token }, {}],
    [browser, {}, {}],
    [browser, { token: `${token}x` }, {}],
    [browser, { token }, { 'sec-fetch-site': 'cross-site' }],
  ] as const) {
    const answer = await who.post('/login', { email, password, ...fields }, headers)
    assert.equal(answer.status, 403)
    assert.equal(who.cookie('cadre_session'), undefined)
  }
  assert.equal(
    (await browser.post('/login', { token, email, password }, { 'sec-fetch-site': 'same-origin', origin: 'null' }))
      .status,
    303,
  )
})

test('the sign-in page shows its error, announces it to screen readers, and keeps the address', async () => {
  const { browser, page } = await open()
  const wrong = await browser.submit(page, '/login', { email, password: 'wrong wrong wrong' })
  assert.equal(wrong.status, 401)
  assert.match(wrong.html, /role="alert">The e-mail address and password do not match an account\./)
  assert.match(wrong.html, /value="ada@example.com"/)
  assert.ok(!wrong.html.includes('wrong wrong wrong'))
  for (let i = 0; i < 4; i++) await browser.submit(page, '/login', { email, password: `wrong wrong ${i}` })
  const full = await browser.submit(page, '/login', { email, password })
  assert.equal(full.status, 429)
  assert.match(full.html, /Try again in 15 minutes\./)
})

test('typed text cannot change the page', async () => {
  const { browser, page } = await open('/login?email=%22%3E%3Cscript%3Ealert(1)%3C%2Fscript%3E')
  assert.ok(!page.html.includes('<script'))
  const answer = await browser.submit(page, '/login', { email: '"><script>alert(1)</script>', password: 'x' })
  assert.ok(!answer.html.includes('<script'))
  const strange = await browser.submit(page, '/login', { email: 'a\u0000b', password: 'x' })
  assert.equal(strange.status, 400)
})

test('an account is made on a page; faults stand beside their fields', async () => {
  const { browser, page } = await open('/signup?return_to=/welcome')
  const faulty = await browser.submit(page, '/signup', { name: 'Bo', email: 'not an address', password: 'short' })
  assert.equal(faulty.status, 400)
  assert.match(faulty.html, /id="email-fault">E-mail address must be a valid e-mail address/)
  assert.match(faulty.html, /value="Bo"/)
  const weak = await browser.submit(faulty, '/signup', {
    name: 'Bo',
    email: 'bo@example.com',
    password: 'password1234',
  })
  assert.match(weak.html, /id="password-fault">Password is one of the most common passwords\./)
  assert.match(
    weak.html,
    /<input id="password"[^>]*aria-describedby="password-fault password-hint"[^>]*aria-invalid="true"/,
  )
  const made = await browser.submit(weak, '/signup', {
    name: 'Bo',
    email: 'bo@example.com',
    password: 'nine black swans',
  })
  assert.equal(made.headers.get('location'), '/welcome')
  assert.ok(browser.cookie('cadre_session'))
  const taken = await browser.submit(page, '/signup', {
    name: 'Bo',
    email: 'BO@example.com',
    password: 'nine black swans',
  })
  assert.equal(taken.status, 409)
})

test("signing out needs the form of one's own session", async () => {
  const { browser, page } = await open()
  await browser.submit(page, '/login', { email, password })
  assert.equal((await browser.post('/logout', { token: 'nope' })).status, 403)
  assert.equal((await browser.post('/logout', {}, { 'sec-fetch-site': 'cross-site' })).status, 403)
  assert.equal((await service.send('GET', '/api/v1/auth/session', { cookie: browser.cookieHeader('/') })).status, 200)
})
