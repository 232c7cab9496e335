import { generateKeyPairSync, randomBytes } from 'node:crypto'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import Provider, { type ClientMetadata } from 'oidc-provider'
import { Browser } from '../browser.ts'
import { memory } from './identity-provider.ts'

/** Clients that the issuer knows. */
export const issuerClients = {
  confidential: { client_id: 'cadre', client_secret: 'the-secret-of-cadre' },
  post: { client_id: 'cadre-post', client_secret: 'the-secret-of-cadre' },
  public: { client_id: 'cadre-public' },
  own: { client_id: 'cadre-own', client_secret: 'the-secret-of-cadre' },
} as const

/** A request to the token endpoint, and what became of it. */
export interface TokenRequest {
  grant_type: string
  refresh_token: string | undefined
  resource: string | undefined
  scope: string | undefined
  authentication: 'basic' | 'post' | 'none'
  status: number
  at_ms: number
}

export interface IssuerOptions {
  /** Seconds. */
  lifetime?: number
  /** Whether refresh tokens are replaced when they are used. */
  rotates?: boolean
  /** Whether it registers clients (RFC 7591), or takes the address of their metadata. */
  registers?: boolean
  metadata?: (metadata: Record<string, unknown>) => Record<string, unknown>
  /** Its answers have no refresh tokens. */
  withoutRefresh?: boolean
}

/**
 * A real authorization server (oidc-provider) on loopback whose users consent automatically: it demands PKCE and exact redirect
 * URIs, takes codes and refresh tokens once, and ends the grant of one that comes again. It counts what it was asked for, and can be
 * scripted to misbehave.
 */
export class TokenIssuer {
  readonly issuer: string
  readonly tokenRequests: TokenRequest[] = []
  /** Answers in its place, by path: `/token`. */
  answers: Record<string, RequestListener> = {}
  /** Held back: the answer to a token request, after it took effect. */
  holdAnswer: ((status: number) => Promise<'send' | 'cut'>) | undefined
  /** The user says no. */
  declines = false
  /** When each access token was given, in milliseconds: the library ends them at whole seconds, sooner than it said. */
  readonly #given = new Map<string, number>()
  readonly #server: ReturnType<typeof createServer>
  readonly #provider: Provider
  readonly #options: Required<Omit<IssuerOptions, 'metadata'>> & Pick<IssuerOptions, 'metadata'>

  private constructor(server: ReturnType<typeof createServer>, options: IssuerOptions) {
    this.#server = server
    this.#options = { lifetime: 600, rotates: true, registers: false, withoutRefresh: false, ...options }
    this.issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    this.#provider = this.#makeProvider()
  }

  static async start(options: IssuerOptions = {}): Promise<TokenIssuer> {
    const server = createServer().listen(0, '127.0.0.1')
    await new Promise((listening) => server.once('listening', listening))
    const made = new TokenIssuer(server, options)
    server.on('request', made.#serve())
    return made
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections()
    await new Promise((closed) => this.#server.close(closed))
  }

  /** Token requests that were answered with tokens. */
  get issued(): TokenRequest[] {
    return this.tokenRequests.filter(({ status }) => status === 200)
  }

  /** Goes through the issuer as its user does, until the browser leaves it again; gives where to. */
  async approve(url: string): Promise<URL> {
    const browser = new Browser(this.issuer)
    const { left, status, html } = await browser.follow(await browser.get(url))
    if (!left) throw new Error(`the issuer did not let go: ${status} ${html.slice(0, 2000)}`)
    return left
  }

  /** What a token is worth now, as a server sees it that is called with it. */
  async judge(authorization: string | undefined): Promise<'good' | 'expired' | 'unknown'> {
    const value = /^Bearer (.+)$/.exec(authorization ?? '')?.[1] ?? ''
    const { AccessToken, ClientCredentials } = this.#provider
    const options = { ignoreExpiration: true }
    const token = (await AccessToken.find(value, options)) ?? (await ClientCredentials.find(value, options))
    if (!token) return 'unknown'
    return Date.now() - this.#given.get(value)! >= this.#options.lifetime * 1000 ? 'expired' : 'good'
  }

  #makeProvider(): Provider {
    const { lifetime, rotates, registers, withoutRefresh } = this.#options
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
    const provider: Provider = new Provider(this.issuer, {
      clients: [
        registered(issuerClients.confidential, 'client_secret_basic'),
        registered(issuerClients.post, 'client_secret_post'),
        registered(issuerClients.public, 'none'),
        { ...issuerClients.own, grant_types: ['client_credentials'], response_types: [], redirect_uris: [] },
      ],
      jwks: { keys: [{ ...privateKey.export({ format: 'jwk' }), kid: 'key', use: 'sig', alg: 'ES256' }] },
      scopes: ['openid', 'offline_access', 'tools:read', 'tools:write'],
      clientDefaults: { id_token_signed_response_alg: 'ES256' },
      pkce: { required: () => true },
      adapter: memory(),
      rotateRefreshToken: rotates,
      issueRefreshToken: async () => !withoutRefresh,
      ttl: {
        AccessToken: lifetime,
        ClientCredentials: lifetime,
        RefreshToken: 3600,
        Grant: 3600,
        Session: 3600,
        Interaction: 600,
        IdToken: 600,
      },
      cookies: { keys: [randomBytes(16).toString('hex')] },
      findAccount: (_ctx, sub) => ({ accountId: sub, claims: () => ({ sub }) }),
      interactions: { url: (_ctx, { uid }) => `/interaction/${uid}` },
      features: {
        devInteractions: { enabled: false },
        clientCredentials: { enabled: true },
        registration: { enabled: registers },
        resourceIndicators: {
          enabled: true,
          defaultResource: (_ctx, _client, oneOf) => oneOf!,
          useGrantedResource: async () => true,
          getResourceServerInfo: (_ctx, resource) => ({
            scope: 'tools:read tools:write',
            audience: resource,
            accessTokenTTL: lifetime,
            accessTokenFormat: 'opaque' as const,
          }),
        },
      },
      loadExistingGrant: async ({ oidc }) => {
        const grant = new oidc.provider.Grant({ clientId: oidc.client!.clientId, accountId: oidc.session!.accountId! })
        grant.addOIDCScope('openid offline_access tools:read tools:write')
        const resource = oidc.params?.resource
        if (typeof resource === 'string') grant.addResourceScope(resource, 'tools:read tools:write')
        await grant.save()
        return grant
      },
    })
    // The port of the service is known after the issuer's.
    const listed = provider.Client.prototype.redirectUriAllowed
    provider.Client.prototype.redirectUriAllowed = function (this, uri: string) {
      return this.redirectUris?.[0] === placeholder
        ? uri.endsWith('/api/v1/credentials/callback')
        : listed.call(this, uri)
    }
    provider.use(async (ctx, next) => {
      await next()
      const { metadata } = this.#options
      if (ctx.path.startsWith('/.well-known/') && metadata && typeof ctx.body === 'object')
        ctx.body = metadata({ ...(ctx.body as object) })
    })
    return provider
  }

  #serve(): RequestListener {
    const serve = this.#provider.callback()
    return async (request, response) => {
      const path = request.url?.split('?')[0] ?? ''
      if (path === '/token') {
        const chunks = await Array.fromAsync(request as AsyncIterable<Buffer>)
        const text = Buffer.concat(chunks).toString()
        const body = Object.fromEntries(new URLSearchParams(text)) as Record<string, string>
        Object.assign(request, { body })
        const asked: TokenRequest = {
          grant_type: body.grant_type ?? '',
          refresh_token: body.refresh_token,
          resource: body.resource,
          scope: body.scope,
          authentication: request.headers.authorization ? 'basic' : body.client_secret ? 'post' : 'none',
          status: 0,
          at_ms: Date.now(),
        }
        this.tokenRequests.push(asked)
        const end = response.end.bind(response)
        response.end = ((...args: Parameters<typeof end>) => {
          asked.status = response.statusCode
          const { access_token } = asked.status === 200 ? JSON.parse(String(args[0])) : {}
          if (access_token !== undefined) this.#given.set(access_token, Date.now())
          const hold = this.holdAnswer
          if (!hold) return end(...args)
          void hold(asked.status).then((what) => (what === 'cut' ? response.destroy() : end(...args)))
          return response
        }) as typeof end
      }
      const instead = this.answers[path]
      if (instead) return instead(request, response)
      if (!path.startsWith('/interaction/')) return serve(request, response)
      const result = this.declines
        ? { error: 'access_denied', error_description: 'the user said no' }
        : { login: { accountId: 'ada' } }
      await this.#provider.interactionFinished(request, response, result, { mergeWithLastSubmission: false })
    }
  }
}

/** Stands for whatever port the service of a test gets. */
const placeholder = 'https://service.example/callback'

function registered(
  client: { client_id: string; client_secret?: string },
  token_endpoint_auth_method: ClientMetadata['token_endpoint_auth_method'],
): ClientMetadata {
  return {
    ...client,
    ...(token_endpoint_auth_method && { token_endpoint_auth_method }),
    redirect_uris: [placeholder],
    response_types: ['code'],
    grant_types: ['authorization_code', 'refresh_token', ...(client.client_secret ? ['client_credentials'] : [])],
  }
}
