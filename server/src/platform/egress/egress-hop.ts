import { checkUrl, type EgressPurpose, EgressRefused, type EgressRules } from './egress-rules.ts'

/** Headers that frame or route the message: the user who chooses the address must not set them. */
const headersRefused = new Set([
  'host',
  'connection',
  'content-length',
  'transfer-encoding',
  'upgrade',
  'expect',
  'te',
  'trailer',
  'keep-alive',
  'proxy-authorization',
  'proxy-connection',
])

/** Whether a user may set a header of this name. */
export function isHeaderAllowed(name: string): boolean {
  return !headersRefused.has(name.toLowerCase())
}

/** Headers that are kept when a redirect leaves the origin; any other may carry a credential. */
const headersHarmless = new Set(['accept', 'accept-language', 'content-type', 'user-agent'])

/** Statuses of redirects; 300 and 304 are none. */
const redirectStatuses = new Set([301, 302, 303, 307, 308])

/** One request in a chain of redirects. */
export interface Hop {
  url: URL
  method: string
  /** Lowercase names. */
  headers: Record<string, string>
  body: string | Uint8Array | undefined
}

/** A request before redirects. */
export interface HopRequest {
  purpose: EgressPurpose
  /** Defaults to `GET`. */
  method?: string
  headers?: Record<string, string>
  body?: string | Uint8Array
}

/** The first hop. Throws `EgressRefused` for a URL, method or header that the rules forbid. */
export function firstHop(rules: EgressRules, target: string | URL, request: HopRequest): Hop {
  const url = checkUrl(rules, target, request.purpose)
  const method = (request.method ?? 'GET').toUpperCase()
  if (!/^[A-Z]+$/.test(method) || method === 'CONNECT' || method === 'TRACE') {
    throw new EgressRefused('method', `the method ${method.slice(0, 20)} is not allowed`)
  }
  const headers: Record<string, string> = { 'user-agent': 'cadre' }
  for (const [name, value] of Object.entries(request.headers ?? {})) {
    const lower = name.toLowerCase()
    if (!isHeaderAllowed(lower)) throw new EgressRefused('header', `the header ${lower} cannot be set`)
    if (!/^[!#$%&'*+.^_`|~0-9a-z-]+$/.test(lower) || !/^[\t\x20-\x7e\x80-\xff]*$/.test(value)) {
      throw new EgressRefused('header', 'a header has a name or a value that HTTP does not allow')
    }
    headers[lower] = value
  }
  return { url, method, headers, body: request.body }
}

/** The target of a redirect; undefined if the response is none. */
export function redirection(status: number, headers: Record<string, string>): string | undefined {
  return redirectStatuses.has(status) ? headers['location'] : undefined
}

/** The next hop of a redirect, checked like the first one. If it leaves the origin, it has no headers with credentials. */
export function nextHop(rules: EgressRules, purpose: EgressPurpose, hop: Hop, status: number, location: string): Hop {
  const target = URL.parse(location, hop.url.href)
  if (!target) throw new EgressRefused('bad_url', 'the answer redirects to something that is not a URL')
  const url = checkUrl(rules, target, purpose)
  const leaves = url.origin !== hop.url.origin
  const headers = Object.fromEntries(
    Object.entries(hop.headers).filter(([name]) => !leaves || headersHarmless.has(name)),
  )
  const becomesGet = (status === 303 && hop.method !== 'HEAD') || (status < 303 && hop.method === 'POST')
  if (!becomesGet) return { ...hop, url, headers }
  delete headers['content-type']
  return { url, method: 'GET', headers, body: undefined }
}

/** Headers of a response: lowercase names, the values of a repeated header joined by `, `. */
export function plainHeaders(headers: Record<string, string | string[] | undefined>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [
      name.toLowerCase(),
      Array.isArray(value) ? value.join(', ') : (value ?? ''),
    ]),
  )
}
