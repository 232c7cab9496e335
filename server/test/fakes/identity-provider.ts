import { generateKeyPairSync, randomBytes, sign, type KeyObject } from 'node:crypto'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import Provider, { type Adapter, type AdapterPayload, type KoaContextWithOIDC } from 'oidc-provider'
import type { Environment } from '../../src/config/config.ts'
import { Browser, type BrowserPage } from '../browser.ts'
import type { TestService } from '../harness.ts'

/** A user with an account at the provider, and the claims about them. */
export interface ProviderPerson {
  sub: string
  email?: string
  email_verified?: boolean
  name?: string
  groups?: string[]
}

/** An ID token taken apart. */
export interface IdToken {
  header: Record<string, unknown>
  claims: Record<string, unknown>
}

/** What goes wrong at the provider; nothing where it is empty. */
export interface ProviderFaults {
  /** Answers in its place, by path: `/token`, `/jwks`, `/.well-known/openid-configuration`, `/me`. */
  answers?: Record<string, RequestListener>
  /** Changes its metadata. */
  metadata?: (metadata: Record<string, unknown>) => Record<string, unknown>
  /** Changes the ID token before it is signed (anew); text is sent as it is, undefined leaves it out. */
  id_token?: (token: IdToken) => IdToken | string | undefined
  /** Signs ID tokens with a key that it does not publish, under the name of the one that it does. */
  foreign_key?: boolean
  /** The user says no. */
  declines?: boolean
}

export const client = { id: 'cadre', post_id: 'cadre-post', secret: 'the-secret-of-cadre' }

interface Key {
  kid: string
  privateKey: KeyObject
  publicKey: KeyObject
}

/**
 * A real OpenID provider (oidc-provider) on loopback whose users sign in and consent automatically, and which can be
 * scripted to misbehave.
 */
export class IdentityProvider {
  readonly issuer: string
  /** Who signs in next. */
  person: ProviderPerson = { sub: 'ada-1', email: 'ada@example.com', email_verified: true, name: 'Ada Lovelace' }
  faults: ProviderFaults = {}
  /** Requests so far, as `POST /token`. */
  readonly requests: string[] = []
  /** How the client has said who it is at `/token`. */
  readonly authentications: ('basic' | 'post')[] = []
  readonly #people = new Map<string, ProviderPerson>()
  readonly #server: ReturnType<typeof createServer>
  readonly #own: Key = newKey()
  readonly #foreign: Key = newKey()
  #key = this.#own

  private constructor(server: ReturnType<typeof createServer>, host: string) {
    this.#server = server
    this.issuer = `http://${host}:${(server.address() as AddressInfo).port}`
  }

  /** `thin`: the ID token has the subject only, and the rest is at `/me`, as the standard has it. */
  static async start({
    host = '127.0.0.1',
    thin = true,
  }: { host?: string; thin?: boolean } = {}): Promise<IdentityProvider> {
    const server = createServer().listen(0, host)
    await new Promise((listening) => server.once('listening', listening))
    const made = new IdentityProvider(server, host)
    server.on('request', made.#serve(thin))
    return made
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections()
    await new Promise((closed) => this.#server.close(closed))
  }

  /** Another key from now on; the one before is not published any more. */
  rotateKey(): void {
    this.#key = newKey()
  }

  /** Goes through the provider as its user does, until the browser leaves it again; gives where to. */
  async approve(url: string): Promise<URL> {
    const browser = new Browser(this.issuer)
    const { left, status, html } = await browser.follow(await browser.get(url))
    if (!left) throw new Error(`the provider did not let go: ${status} ${html.slice(0, 2000)}`)
    return left
  }

  #serve(thin: boolean): RequestListener {
    const provider = new Provider(this.issuer, {
      clients: [
        { client_id: client.id, client_secret: client.secret, ...registered },
        {
          client_id: client.post_id,
          client_secret: client.secret,
          token_endpoint_auth_method: 'client_secret_post',
          ...registered,
        },
      ],
      jwks: {
        keys: [{ ...this.#own.privateKey.export({ format: 'jwk' }), kid: this.#own.kid, use: 'sig', alg: 'ES256' }],
      },
      claims: { email: ['email', 'email_verified'], profile: ['name', 'groups'] },
      conformIdTokenClaims: thin,
      pkce: { required: () => true },
      adapter: memory(),
      ttl: { Interaction: 600, Grant: 600, Session: 600, AccessToken: 600, IdToken: 600 },
      cookies: { keys: [randomBytes(16).toString('hex')] },
      findAccount: (_ctx, sub) => ({ accountId: sub, claims: () => ({ ...this.#people.get(sub), sub }) }),
      interactions: { url: (_ctx, { uid }) => `/interaction/${uid}` },
      features: { devInteractions: { enabled: false } },
      loadExistingGrant: async ({ oidc }) => {
        const grant = new oidc.provider.Grant({ clientId: oidc.client!.clientId, accountId: oidc.session!.accountId! })
        grant.addOIDCScope('openid email profile')
        await grant.save()
        return grant
      },
    })
    // The port of the service is known after the provider's.
    provider.Client.prototype.redirectUriAllowed = (uri: string) => /\/api\/v1\/auth\/sso\/[^/]+\/callback$/.test(uri)
    provider.use(async (ctx, next) => {
      await next()
      this.#change(ctx as KoaContextWithOIDC)
    })
    const serve = provider.callback()
    return async (request, response) => {
      const path = request.url?.split('?')[0] ?? ''
      this.requests.push(`${request.method} ${path}`)
      if (path === '/token') this.authentications.push(request.headers.authorization ? 'basic' : 'post')
      const instead = this.faults.answers?.[path]
      if (instead) return instead(request, response)
      if (!path.startsWith('/interaction/')) return serve(request, response)
      this.#people.set(this.person.sub, { ...this.person })
      const result = this.faults.declines
        ? { error: 'access_denied', error_description: 'the user said no' }
        : { login: { accountId: this.person.sub } }
      await provider.interactionFinished(request, response, result, { mergeWithLastSubmission: false })
    }
  }

  #change(ctx: KoaContextWithOIDC): void {
    const { metadata, id_token: change, foreign_key } = this.faults
    if (ctx.path === '/.well-known/openid-configuration' && metadata) ctx.body = metadata({ ...(ctx.body as object) })
    if (ctx.path === '/jwks')
      ctx.body = {
        keys: [{ ...this.#key.publicKey.export({ format: 'jwk' }), kid: this.#key.kid, use: 'sig', alg: 'ES256' }],
      }
    const body = ctx.body as { id_token?: string } | undefined
    if (ctx.path !== '/token' || body?.id_token === undefined) return
    const { id_token, ...rest } = body
    const taken = takeApart(id_token)
    const token = { ...taken, header: { ...taken.header, kid: this.#key.kid } }
    const changed = change ? change(token) : token
    const key = foreign_key ? this.#foreign : this.#key
    const text = typeof changed === 'object' ? signed(changed, key) : changed
    ctx.body = text === undefined ? rest : { ...rest, id_token: text }
  }
}

/** What a provider keeps, for as long as it lives. */
export function memory(): (model: string) => Adapter {
  const kept = new Map<string, AdapterPayload>()
  const uids = new Map<string, string>()
  return (model) => ({
    async upsert(id, payload) {
      kept.set(`${model} ${id}`, payload)
      if (payload.uid) uids.set(payload.uid, id)
    },
    find: async (id) => kept.get(`${model} ${id}`),
    findByUid: async (uid) => kept.get(`${model} ${uids.get(uid)}`),
    findByUserCode: async () => undefined,
    async consume(id) {
      const payload = kept.get(`${model} ${id}`)
      if (payload) payload.consumed = Math.floor(Date.now() / 1000)
    },
    async destroy(id) {
      kept.delete(`${model} ${id}`)
    },
    async revokeByGrantId(grant) {
      for (const [key, { grantId }] of kept) if (grantId === grant) kept.delete(key)
    },
  })
}

const registered = {
  redirect_uris: ['https://service.example/callback'],
  id_token_signed_response_alg: 'ES256' as const,
  response_types: ['code' as const],
  grant_types: ['authorization_code'],
}

/** Settings for a service that has these providers, by their names there; each may have further ones. */
export function ssoEnvironment(
  providers: Record<string, { provider: IdentityProvider; more?: Record<string, string> }>,
): Environment {
  const env: Record<string, string> = {
    CADRE_EGRESS_ALLOW: Object.values(providers)
      .map(({ provider }) => new URL(provider.issuer).host)
      .join(','),
  }
  for (const [name, { provider, more = {} }] of Object.entries(providers)) {
    const settings = { ISSUER: provider.issuer, CLIENT_ID: client.id, CLIENT_SECRET: client.secret, ...more }
    for (const [key, value] of Object.entries(settings))
      env[`CADRE_SSO_${name.toUpperCase().replaceAll('-', '_')}_${key}`] = value
  }
  return env
}

/** How a test signs in with a provider. */
export interface SsoJourney {
  /** A new one where it is not given. */
  browser?: Browser
  query?: Record<string, string>
  /** Changes where the provider sends the browser. */
  change?: (callback: URL) => void
}

/** Begins at a service, goes through the provider, and comes back: gives the answer of the callback, and the browser. */
export async function signInWith(
  { url }: Pick<TestService, 'url'>,
  name: string,
  provider: IdentityProvider,
  { browser = new Browser(url), query = {}, change }: SsoJourney = {},
): Promise<{ browser: Browser; answer: BrowserPage; callback: URL }> {
  const started = await browser.get(`/api/v1/auth/sso/${name}?${new URLSearchParams(query)}`)
  const onward = started.headers.get('location')
  if (started.status !== 303 || onward === null) throw new Error(`not begun: ${started.status} ${started.html}`)
  const callback = await provider.approve(onward)
  change?.(callback)
  return { browser, answer: await browser.get(callback.href), callback }
}

/** An unsigned token of these parts, as an attacker would write it. */
export function unsigned({ header, claims }: IdToken): string {
  return `${encode({ ...header, alg: 'none' })}.${encode(claims)}.`
}

function signed({ header, claims }: IdToken, { privateKey }: Key): string {
  const text = `${encode(header)}.${encode(claims)}`
  return `${text}.${sign('sha256', Buffer.from(text), { key: privateKey, dsaEncoding: 'ieee-p1363' }).toString('base64url')}`
}

function takeApart(token: string): IdToken {
  const [header = '', claims = ''] = token.split('.').map((part) => Buffer.from(part, 'base64url').toString())
  return { header: JSON.parse(header), claims: JSON.parse(claims) }
}

function encode(part: object): string {
  return Buffer.from(JSON.stringify(part)).toString('base64url')
}

function newKey(): Key {
  return { kid: randomBytes(8).toString('hex'), ...generateKeyPairSync('ec', { namedCurve: 'P-256' }) }
}
