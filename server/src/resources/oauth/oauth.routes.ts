import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { BucketName } from '#contract/core/limits.ts'
import { scopes } from '#contract/core/scopes.ts'
import type { Context } from '../../context.ts'
import type { HttpContext } from '../../http/http-context.ts'
import { errorPage, wantsPage } from '../../http/pages/forms.ts'
import { sendPage } from '../../http/pages/page.ts'
import { addressSubject, countSubject } from '../../http/access/rate-limit.ts'
import { authorizationServer } from './provider/authorization-server.ts'
import { clientDocumentReader } from './client-document-reader.ts'
import { deviceRoutes } from './device.routes.ts'
import { forwardToProvider } from './provider/provider-bridge.ts'
import { interactionRoutes } from './interaction.routes.ts'
import { oauthClientRoutes } from './oauth-clients.routes.ts'
import { findClient } from './oauth.queries.ts'
import { registerApp } from './registration.ts'

/** Maximum size of a form at the token and revocation endpoints. */
const formBytesMax = 56 * 1024

/**
 * Routes of OAuth 2.0 (spec 4.2, 5.3; decisions 0005, D76–D84): protocol, consent pages, and registration of apps.
 */
export function oauthRoutes(app: FastifyInstance, http: HttpContext, context: Context): void {
  const server = authorizationServer(context)
  const readDocument = clientDocumentReader(context)
  const count = async (reply: FastifyReply, bucket: BucketName, subject: string): Promise<void> => {
    void reply.headers(await countSubject(http.authentication.sql, http.authentication.rates, bucket, subject))
  }

  app.get('/oauth2/authorize', async (request, reply) => {
    await count(reply, 'oauth.authorize', addressSubject(request.ip))
    const refusal = await readDocument(request.url)
    if (refusal !== undefined) return refuseClient(request, reply, refusal)
    await forwardToProvider(request, reply, await server(), { query: withUsualScope(request.url) })
  })
  app.get('/oauth2/authorize/:uid', async (request, reply) => {
    await forwardToProvider(request, reply, await server(), { cookie: 'resume' })
  })
  for (const [path, bucket] of [
    ['/oauth2/token', 'oauth.token'],
    ['/oauth2/revoke', 'oauth.revoke'],
    ['/oauth2/device', 'oauth.token'],
  ] as const) {
    app.post(path, { bodyLimit: formBytesMax }, async (request, reply) => {
      const body = Buffer.isBuffer(request.body) ? request.body : undefined
      await count(reply, bucket, await clientSubject(context, request, body))
      await forwardToProvider(request, reply, await server(), { body })
    })
  }
  if (context.config.oauth_registration)
    app.post('/oauth2/register', { bodyLimit: formBytesMax }, async (request, reply) => {
      await count(reply, 'oauth.authorize', addressSubject(request.ip))
      const { status, body } = await registerApp(context, Buffer.isBuffer(request.body) ? request.body : undefined)
      return reply.code(status).header('cache-control', 'no-store').send(body)
    })
  const metadata = '/.well-known/oauth-authorization-server'
  // For an issuer with a path, RFC 8414 (3.1) puts the well-known part before that path; other clients put it after.
  for (const path of new Set([metadata, `${metadata}${app.base_path}`])) {
    app.get(path, async (request, reply) => {
      await forwardToProvider(request, reply, await server(), { path: metadata })
    })
  }
  protectedResourceRoutes(app, context)
  interactionRoutes(app, context, server)
  deviceRoutes(app, http, context, server)
  oauthClientRoutes(app, http)
}

/** Default scopes for MCP clients, which request a resource without scopes. */
const usualScope = 'agents:read tasks:write'

/**
 * The query of an authorization with the default scopes if it has a resource and no scope; undefined for no change.
 */
function withUsualScope(url: string): string | undefined {
  const query = new URLSearchParams(url.split('?', 2)[1] ?? '')
  if (!query.has('resource') || (query.get('scope') ?? '') !== '') return undefined
  query.set('scope', usualScope)
  return query.toString()
}

/** Responds to an authorization of an unknown app, without a redirect (decision D76). */
async function refuseClient(request: FastifyRequest, reply: FastifyReply, reason: string): Promise<FastifyReply> {
  const code = 'invalid_client'
  if (!wantsPage(request))
    return reply.code(400).send({ error: code, error_description: `The app is not accepted: ${reason}.` })
  const message = `The app that sent you here is not accepted: ${reason}. It got no access.`
  return sendPage(reply, errorPage('This link does not work', message, { code, request_id: request.id }), 400)
}

/** Metadata of protected resources (RFC 9728): of the API, and of the resource in the path. */
function protectedResourceRoutes(app: FastifyInstance, context: Context): void {
  for (const path of ['', '/api/v1', '/mcp', '/mcp/agents/:agent_id']) {
    const metadata = async ({ params }: FastifyRequest): Promise<object> => ({
      resource: `${context.public_url()}${path.replace(':agent_id', (params as { agent_id?: string }).agent_id ?? '')}`,
      authorization_servers: [context.public_url()],
      // MCP clients request all of these unless a challenge names scopes.
      scopes_supported: path.startsWith('/mcp') ? usualScope.split(' ') : scopes,
      bearer_methods_supported: ['header'],
      resource_name: 'Cadre',
      resource_documentation: `${context.public_url()}/api/v1/docs`,
    })
    const paths = [`/.well-known/oauth-protected-resource${path}`]
    if (app.base_path !== '') paths.push(`/.well-known/oauth-protected-resource${app.base_path}${path}`)
    for (const at of paths) app.get(at, metadata)
  }
}

/**
 * The rate limit subject: client and IP address. All unknown clients count as one, so that invented ids neither evade
 * the limit nor fill the table.
 */
async function clientSubject({ sql }: Context, request: FastifyRequest, body: Buffer | undefined): Promise<string> {
  const posted = new URLSearchParams(body?.toString() ?? '').get('client_id')
  const basic = /^basic +([A-Za-z0-9+/=]{1,1024})$/i.exec(request.headers.authorization ?? '')?.[1]
  const client_id =
    posted ??
    Buffer.from(basic ?? '', 'base64')
      .toString()
      .split(':', 1)[0] ??
    ''
  const client = await findClient(sql, client_id)
  return `${client ? `client:${client.client_id}` : 'client'}@${addressSubject(request.ip)}`
}
