import assert from 'node:assert/strict'
import { insertClient, newClientSecret } from '../src/resources/oauth/oauth-clients.queries.ts'
import { insertOrganization, insertUser } from '../src/resources/users/users.queries.ts'
import { createPasswords } from '../src/platform/crypto/passwords.ts'
import { Browser, type BrowserPage } from './browser.ts'
import type { TestService } from './harness.ts'

/** An app registered for a test. */
export interface TestClient {
  client_id: string
  /** Empty for a public client. */
  client_secret: string
  redirect_uri: string
}

/** A response of the token or revocation endpoint. */
export interface TokenReply {
  status: number
  headers: Headers
  body: any
}

/** Drives the authorization server of a test's service from outside. */
export class OAuthDriver {
  readonly service: TestService
  readonly url: string
  constructor(service: TestService) {
    this.service = service
    this.url = service.url
  }

  /** Registers an app in the owner's organization. */
  async client(
    name: string,
    options: { redirect_uri?: string; scopes?: string[]; native?: boolean; isPublic?: boolean } = {},
  ): Promise<TestClient> {
    const {
      redirect_uri = `https://${name}.example/cb`,
      scopes = ['read', 'write', 'agents:read'],
      native = false,
      isPublic = false,
    } = options
    const secret = isPublic ? null : newClientSecret()
    // A previous test file in this process may have used this name.
    await this.service.sql`delete from oauth_client where client_id = ${name}`
    const client = await insertClient(this.service.sql, this.service.owner.org_id, {
      client_id: name,
      name: `The ${name} app`,
      redirect_uris: [redirect_uri],
      scopes,
      native,
      secret,
    })
    assert.ok(client)
    return { client_id: name, client_secret: secret ?? '', redirect_uri }
  }

  /** Creates a user with a new organization. */
  async user(email: string, password: string): Promise<{ user_id: string; org_id: string }> {
    const password_hash = await createPasswords().hash(password)
    // The same for an address.
    await this.service.sql`update app_user set email = id || '@over.example' where email = ${email}`
    const user = await insertUser(this.service.sql, { email, name: email.split('@')[0] ?? email, password_hash })
    assert.ok(user)
    const organization = await insertOrganization(this.service.sql, `${email}'s`, user.id)
    return { user_id: user.id, org_id: organization.id }
  }

  /** The authorization URL of an app; an undefined parameter is omitted. */
  authorizeUrl(client: TestClient, changes: Record<string, string | undefined> = {}): string {
    const all = {
      client_id: client.client_id,
      redirect_uri: client.redirect_uri,
      response_type: 'code',
      scope: 'read write',
      state: 'st-1',
      ...changes,
    }
    const given = Object.entries(all).filter((entry): entry is [string, string] => entry[1] !== undefined)
    return `${this.url}/oauth2/authorize?${new URLSearchParams(given)}`
  }

  /** Requests without a session, as a program. */
  ask(client: TestClient, changes: Record<string, string | undefined> = {}): Promise<Response> {
    return fetch(this.authorizeUrl(client, changes), { redirect: 'manual' })
  }

  /** Completes an authorization as a user; returns the pages that were shown. */
  async authorize(
    url: string,
    {
      browser = new Browser(this.url),
      email = this.service.owner.email,
      password = this.service.owner.password,
      decision = 'allow',
    }: Person = {},
  ): Promise<{ left: URL; pages: string[]; browser: Browser }> {
    const pages: string[] = []
    let page: BrowserPage & { left?: URL } = await browser.follow(await browser.get(url))
    for (let steps = 0; steps < 4 && !page.left; steps++) {
      const isLogin = page.html.includes('action="/login"')
      pages.push(isLogin ? 'login' : 'consent')
      const fields: Record<string, string> = isLogin ? { email, password } : { decision }
      page = await browser.follow(await browser.submit(page, isLogin ? '/login' : /^\/oauth2\/interaction\//, fields))
    }
    if (!page.left) throw new Error(`stuck: ${page.status} ${page.html.slice(page.html.indexOf('<main'), 2000)}`)
    return { left: page.left, pages, browser }
  }

  /** A new authorization code. */
  async code(
    client: TestClient,
    changes: Record<string, string | undefined> = {},
    person: Person = {},
  ): Promise<string> {
    const { left } = await this.authorize(this.authorizeUrl(client, changes), person)
    const code = left.searchParams.get('code')
    assert.ok(code, left.href)
    return code
  }

  async post(path: string, body: Record<string, string>, headers: Record<string, string> = {}): Promise<TokenReply> {
    const response = await fetch(`${this.url}${path}`, { method: 'POST', headers, body: new URLSearchParams(body) })
    return { status: response.status, headers: response.headers, body: await response.json() }
  }

  exchange(client: TestClient, code: string, extra: Record<string, string> = {}): Promise<TokenReply> {
    return this.post('/oauth2/token', {
      grant_type: 'authorization_code',
      ...credentials(client),
      code,
      redirect_uri: client.redirect_uri,
      ...extra,
    })
  }

  refresh(client: TestClient, refresh_token: string, extra: Record<string, string> = {}): Promise<TokenReply> {
    return this.post('/oauth2/token', { grant_type: 'refresh_token', ...credentials(client), refresh_token, ...extra })
  }

  revoke(client: TestClient, token: string, extra: Record<string, string> = {}): Promise<TokenReply> {
    return this.post('/oauth2/revoke', { token, ...credentials(client), ...extra })
  }

  /** New tokens. */
  async tokens(
    client: TestClient,
    changes: Record<string, string | undefined> = {},
    person: Person = {},
  ): Promise<any> {
    const { status, body } = await this.exchange(client, await this.code(client, changes, person))
    assert.equal(status, 200, JSON.stringify(body))
    return body
  }

  /** The status of a request with a token: 200 while it is valid. */
  async statusOf(token: string): Promise<number> {
    return (await this.service.send('GET', '/api/v1/auth/permissions', { token })).status
  }
}

/** The user and browser of an authorization. */
export interface Person {
  browser?: Browser
  email?: string
  password?: string
  decision?: 'allow' | 'deny'
}

export function credentials({ client_id, client_secret }: TestClient): Record<string, string> {
  return { client_id, ...(client_secret ? { client_secret } : {}) }
}
