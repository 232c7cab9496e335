import { IncomingMessage } from 'node:http'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type Provider from 'oidc-provider'
import { invalid } from '#contract/core/problems.ts'
import { userAgentOf } from '../../../http/access/user-agent.ts'
import { isCleanText } from '../../../http/validation.ts'
import { oauthCookies } from './provider.ts'

/** Context of a request that the library serves, for the middleware. */
export interface ProviderRequest {
  request_id: string
  ip: string
  user_agent: string
  started_at: number
  /** CORS headers of the response; none if the page may not read it (decision D18). */
  cors: Readonly<Record<string, string>>
  /** The internal error, which the library does not expose. */
  failure?: unknown
}

/** Headers that let a page of another origin read a response. */
export const corsHeaders = ['access-control-allow-origin', 'access-control-expose-headers'] as const

const providerRequests = new WeakMap<IncomingMessage, ProviderRequest>()

/** The context of a forwarded request; throws if there is none. */
export function providerRequestOf(request: IncomingMessage): ProviderRequest {
  const providerRequest = providerRequests.get(request)
  if (!providerRequest) throw new Error('a request reached the authorization server without its request context')
  return providerRequest
}

/** Known parameters of the authorization endpoint; others are ignored (RFC 6749 §3.1). */
const authorizationParameters = [
  'client_id',
  'redirect_uri',
  'response_type',
  'scope',
  'state',
  'code_challenge',
  'code_challenge_method',
  'prompt',
  'login_hint',
  'resource',
]

/** Headers that are forwarded to the library. Client address and host are set by the service. */
const passedHeaders = ['authorization', 'accept', 'content-length', 'user-agent']

/** The library with its request handler. */
export interface Library {
  provider: Provider
  serve: ReturnType<Provider['callback']>
}

/** Options of forwarding a request to the library. */
export interface ForwardedHeaders {
  /** The cookie of the authorization that this step may see. The library's session cookie is never forwarded. */
  cookie?: keyof typeof oauthCookies
  /** Cookies that replace the sent ones. */
  cookies?: string
  /** The body, if it has been read. */
  body?: Buffer | undefined
  /** The method that replaces the sent one; the body is then not forwarded. */
  method?: 'GET'
  /** The path for the library, if it differs from the requested one. */
  path?: string
  /** The query that replaces the sent one. */
  query?: string | undefined
}

/**
 * Forwards a request to the library, which sends the response. After this call no hook of the framework sends
 * anything, so the headers set so far are written to the response here.
 *
 * The library gets a new request instead of the original one: only the headers, cookies and parameters listed above,
 * the bounded body, and the public address instead of `Host` and `X-Forwarded-*`.
 */
export async function forwardToProvider(
  request: FastifyRequest,
  reply: FastifyReply,
  { provider, serve }: Library,
  { cookie, cookies, body, method, path, query }: ForwardedHeaders = {},
): Promise<void> {
  const issuer = new URL(provider.issuer)
  const passed = new IncomingMessage(request.raw.socket)
  // The library does not support HEAD. Node drops the body of the response.
  passed.method = method ?? (request.method === 'HEAD' ? 'GET' : request.method)
  passed.httpVersion = '1.1'
  passed.httpVersionMajor = 1
  passed.httpVersionMinor = 1
  passed.url = knownUrl(request, path, query)
  // The library derives its mount path from this; it is part of all URLs that it returns.
  Object.assign(passed, { originalUrl: `${request.server.base_path}${passed.url}` })
  passed.headers = {
    host: issuer.host,
    'x-forwarded-proto': issuer.protocol.slice(0, -1),
    'x-forwarded-for': request.ip,
    cookie: cookies ?? (cookie && cookiesNamed(request, oauthCookies[cookie])),
    'content-type': request.content_type ?? request.headers['content-type'],
  }
  for (const name of passedHeaders) passed.headers[name] = request.headers[name]
  if (method) for (const name of ['content-type', 'content-length']) delete passed.headers[name]
  if (body) passed.push(body)
  passed.push(null)
  passed.complete = true

  providerRequests.set(passed, {
    request_id: request.id,
    ip: request.ip,
    user_agent: userAgentOf(request),
    started_at: request.started_at,
    cors: Object.fromEntries(
      corsHeaders.flatMap((name) => (reply.hasHeader(name) ? [[name, String(reply.getHeader(name))]] : [])),
    ),
  })
  for (const [name, value] of Object.entries(reply.getHeaders()))
    if (value !== undefined) reply.raw.setHeader(name, value)
  reply.hijack()
  await serve(passed, reply.raw)
}

function knownUrl(request: FastifyRequest, given?: string, query?: string): string {
  const [asked, sent = ''] = splitOnce(request.url, '?')
  const search = query ?? sent
  const path = given ?? asked
  const known = [...new URLSearchParams(search)].filter(([name]) => authorizationParameters.includes(name))
  const [unclean] = known.find(([, value]) => !isCleanText(value)) ?? []
  if (unclean)
    throw invalid({ field: unclean, message: 'must be well-formed Unicode without U+0000', code: 'invalid_format' })
  return known.length === 0 ? path : `${path}?${new URLSearchParams(known)}`
}

/** The cookie with this name and its signature, as sent. */
function cookiesNamed(request: FastifyRequest, name: string): string | undefined {
  const sent = request.headers.cookie?.split(/;\s*/) ?? []
  return (
    sent.filter((cookie) => cookie.startsWith(`${name}=`) || cookie.startsWith(`${name}.sig=`)).join('; ') || undefined
  )
}

function splitOnce(text: string, separator: string): [string, string?] {
  const at = text.indexOf(separator)
  return at < 0 ? [text] : [text.slice(0, at), text.slice(at + separator.length)]
}
