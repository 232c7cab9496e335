import { IncomingMessage } from 'node:http'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type Provider from 'oidc-provider'
import { invalid } from '#contract/core/problems.ts'
import { userAgentOf } from '../../../http/access/user-agent.ts'
import { isCleanText } from '../../../http/validation.ts'
import { oauthCookies } from './provider.ts'

/** What we know about a request that the library serves, for what is done around it. */
export interface ProviderRequest {
  request_id: string
  ip: string
  user_agent: string
  started_at: number
  /** Those of `corsHeaders` that the answer has: none where the page that asks may not read it (decision D18). */
  cors: Readonly<Record<string, string>>
  /** What went wrong inside, where the library only says that something did. */
  failure?: unknown
}

/** The headers by which a page of another origin may read an answer. */
export const corsHeaders = ['access-control-allow-origin', 'access-control-expose-headers'] as const

const providerRequests = new WeakMap<IncomingMessage, ProviderRequest>()

/** What is known about a request that was handed over. */
export function providerRequestOf(request: IncomingMessage): ProviderRequest {
  const providerRequest = providerRequests.get(request)
  if (!providerRequest) throw new Error('a request reached the authorization server without its request context')
  return providerRequest
}

/** Parameters that the authorization endpoint understands; others are ignored (RFC 6749 §3.1). */
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

/** Headers that mean something to OAuth. Where the request came from and under which name we are known, we say. */
const passedHeaders = ['authorization', 'accept', 'content-length', 'user-agent']

/** The library, and what serves a request by it. */
export interface Library {
  provider: Provider
  serve: ReturnType<Provider['callback']>
}

/** What goes with a request that is handed over. */
export interface ForwardedHeaders {
  /** The cookie of the running authorization that this step may see; none may see the library's own session. */
  cookie?: keyof typeof oauthCookies
  /** Cookies in the place of those that were sent. */
  cookies?: string
  /** The body, when it has been read. */
  body?: Buffer | undefined
  /** The method in the place of the one that was sent; the body is not passed on then. */
  method?: 'GET'
  /** The path that the library knows, where it is not the one that was asked for. */
  path?: string
  /** The query in the place of the one that was sent. */
  query?: string | undefined
}

/**
 * Gives a request to the library and leaves the answer to it: beyond this call no hook of the framework sends anything,
 * so the headers that are set by now are put on the answer here.
 *
 * The library is handed a request of our making rather than the one that came in: of its headers, cookies and parameters
 * only what is listed above, the body that was read within our bounds, and the public address instead of `Host` and
 * `X-Forwarded-*`.
 */
export async function forwardToProvider(
  request: FastifyRequest,
  reply: FastifyReply,
  { provider, serve }: Library,
  { cookie, cookies, body, method, path, query }: ForwardedHeaders = {},
): Promise<void> {
  const issuer = new URL(provider.issuer)
  const passed = new IncomingMessage(request.raw.socket)
  // The library knows no HEAD; that its answer has no body then is seen to below it.
  passed.method = method ?? (request.method === 'HEAD' ? 'GET' : request.method)
  passed.httpVersion = '1.1'
  passed.httpVersionMajor = 1
  passed.httpVersionMinor = 1
  passed.url = knownUrl(request, path, query)
  // What the library takes for the path that it is mounted at: it stands in all addresses that it gives.
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

/** The cookie of this name and its signature, as they were sent. */
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
