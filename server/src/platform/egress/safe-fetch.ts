import { parseAllowList } from './address-rules.ts'
import { EgressError, type EgressErrorCode, egressFailure } from './egress-error.ts'
import { connectTimeout_ms, type EgressBounds, egressBounds, type Guard, judge, systemResolve } from './egress-guard.ts'
import { firstHop, type Hop, type HopRequest, nextHop, redirection } from './egress-hop.ts'
import { checkUrl, type EgressPurpose, EgressRefused, type EgressRules, type RefusalReason } from './egress-rules.ts'
import { type EgressStream, type EgressStreamRequest, openStream } from './egress-stream.ts'
import type { ResolveName } from './resolve-name.ts'
import { openUpstream, type UpstreamConnection, type UpstreamUse } from './connect.ts'
import { keepConnections, type KeptConnections } from './kept-connections.ts'
import { limitedAbort } from '../abort-signals.ts'
import { exchange, type Incoming } from './exchange.ts'

export { EgressError, type EgressErrorCode, EgressRefused, type EgressPurpose, type RefusalReason }

export interface EgressRequest extends HopRequest {
  /** Time limit of the whole request; the limit of the purpose also applies. */
  timeout_ms?: number
  /**
   * For a request that is safe to repeat (RFC 9110 §9.2.2): the name of the group that shares idle connections. If a reused
   * connection breaks before the first byte of the response, the request is sent again on a new one.
   */
  keptFor?: string
  signal?: AbortSignal
}

export interface EgressAnswer {
  status: number
  /** Lowercase names; values of a repeated header joined by `, `. */
  headers: Record<string, string>
  body: Buffer
  /** The response was longer than its limit, and the rest was not read. Only possible for webhooks. */
  truncated: boolean
  /** The URL of the response, after redirects. */
  url: string
  redirects: number
  network: UpstreamUse
}

/** The guarded egress: the only client for requests to addresses that users choose (decision D104). */
export interface Egress {
  /** Checks a URL without resolving its name, for its registration. Throws `EgressRefused`. */
  check(url: string | URL, purpose: EgressPurpose): URL
  /**
   * Sends a request. Throws `EgressRefused` if the rules forbid it or a hop of a redirect, `EgressError` if it fails, and
   * the signal's reason if it is aborted. A response of any status is returned, also a redirect of a purpose that follows
   * none.
   */
  fetch(url: string | URL, request: EgressRequest): Promise<EgressAnswer>
  /**
   * The checked addresses of an origin, for a client that then connects only to these. Throws `EgressRefused`,
   * `UpstreamError`, or the signal's reason.
   */
  addresses(origin: string, purpose: EgressPurpose, signal: AbortSignal): Promise<readonly string[]>
  /** Sends a request with a streamed response under the same rules; see `openStream`. */
  open(url: string | URL, request: EgressStreamRequest): Promise<EgressStream>
}

export interface EgressOptions {
  /** Entries of `CADRE_EGRESS_ALLOW`; an invalid one throws `AllowListError` (see `parseAllowList`). */
  allow?: readonly string[]
  /** Ports that this service listens on; a function if they are known only later. */
  ownPorts?: readonly number[] | (() => readonly number[])
  /** Where the database listens; undefined for a unix socket. */
  database?: { host: string; port: number }
  listensOnLoopback?: boolean
  /** Defaults to the resolver of this machine. */
  resolve?: ResolveName
}

/**
 * Makes the HTTP client for outgoing requests. Every request goes to addresses that were checked for it, over a new
 * connection unless it has `keptFor`.
 */
export function makeEgress(options: EgressOptions = {}): Egress {
  const { ownPorts = [], resolve = systemResolve } = options
  const rules: EgressRules = {
    allow: parseAllowList(options.allow ?? []),
    ownPorts: typeof ownPorts === 'function' ? ownPorts : () => ownPorts,
    database: options.database,
    listensOnLoopback: options.listensOnLoopback ?? false,
  }
  const guard: Guard = { rules, resolve }
  const kept = keepConnections()
  return {
    check: (url, purpose) => checkUrl(rules, url, purpose),
    addresses: async (origin, purpose, signal) => judge(guard, checkUrl(rules, origin, purpose), purpose, signal),
    fetch: (url, request) => follow({ guard, kept }, url, request),
    open: (url, request) => openStream(guard, url, request),
  }
}

async function follow(
  { guard, kept }: { guard: Guard; kept: KeptConnections },
  url: string | URL,
  request: EgressRequest,
): Promise<EgressAnswer> {
  const { purpose, timeout_ms = Infinity, signal, keptFor } = request
  const bound = egressBounds[purpose]
  const network: UpstreamUse = { bytes_in: 0, bytes_out: 0 }
  const limit = limitedAbort(Math.min(timeout_ms, bound.total_ms), signal)
  const ends = limit.ends.signal
  try {
    let hop = firstHop(guard.rules, url, request)
    for (let redirects = 0; ; redirects++) {
      ends.throwIfAborted()
      const addresses = await judge(guard, hop.url, purpose, ends)
      const sending = { bound, signal: ends, network }
      const answer = await (keptFor === undefined
        ? sendAnew(hop, addresses, sending)
        : sendKept(hop, addresses, { ...sending, kept, key: `${keptFor} ${hop.url.origin}` }))
      const location = redirection(answer.status, answer.headers)
      if (location === undefined || bound.redirectsMax === 0) return { ...answer, redirects, network }
      if (redirects === bound.redirectsMax) {
        throw new EgressError('too_many_redirects', `more than ${bound.redirectsMax} redirects`, { network })
      }
      hop = nextHop(guard.rules, purpose, hop, answer.status, location)
    }
  } catch (error) {
    signal?.throwIfAborted()
    if (error instanceof EgressRefused) error.sent = network.bytes_out > 0
    if (error instanceof EgressRefused || error instanceof EgressError) throw error
    if (ends.aborted) throw new EgressError('timed_out', 'no complete answer in time', { network })
    throw egressFailure(error, network)
  } finally {
    limit.release()
  }
}

/** Limits of one hop, and its count of bytes. */
interface Sending {
  bound: EgressBounds
  signal: AbortSignal
  /** The bytes of the hop are added here, also if it fails. */
  network: UpstreamUse
}

type HopAnswer = Omit<EgressAnswer, 'redirects' | 'network'>

/** Sends one hop over a new connection, and closes it. */
async function sendAnew(hop: Hop, addresses: readonly string[], sending: Sending): Promise<HopAnswer> {
  const upstream = await openUpstream(hop.url.origin, { addresses, connectTimeout_ms })
  try {
    return await sendOver(upstream, hop, sending)
  } finally {
    await upstream.destroy()
  }
}

/** Sends one hop over an idle or a new connection, and keeps it afterwards. */
async function sendKept(
  hop: Hop,
  addresses: readonly string[],
  { kept, key, ...sending }: Sending & { kept: KeptConnections; key: string },
): Promise<HopAnswer> {
  const over = async (upstream: UpstreamConnection): Promise<HopAnswer> => {
    try {
      const answer = await sendOver(upstream, hop, sending)
      await kept.give(key, upstream)
      return answer
    } catch (error) {
      await upstream.destroy()
      throw error
    }
  }
  const earlier = kept.take(key, addresses)
  if (earlier) {
    const { bytes_in } = earlier.use()
    try {
      return await over(earlier)
    } catch (error) {
      // Without a byte of response, the server closed the idle connection while the request was sent.
      if (earlier.use().bytes_in !== bytes_in || sending.signal.aborted) throw error
    }
  }
  return over(await openUpstream(hop.url.origin, { addresses, connectTimeout_ms }))
}

/** Sends one hop over a connection and reads the response up to its limit; if the response is cut, the connection closes. */
async function sendOver(
  upstream: UpstreamConnection,
  { url, method, headers, body }: Hop,
  { bound, signal, network }: Sending,
): Promise<HopAnswer> {
  const before = upstream.use()
  try {
    const answer = await exchange(upstream.client, {
      path: url.pathname + url.search,
      method,
      headers,
      body: body ?? null,
      signal,
    })
    const { read, truncated } = await readFirst(answer, bound.bytesMax)
    if (truncated && !bound.cuts) {
      throw new EgressError('answer_too_large', `the answer is longer than ${bound.bytesMax} bytes`, { network })
    }
    return { status: answer.status, headers: answer.headers, body: read, truncated, url: url.href }
  } finally {
    const use = upstream.use()
    network.bytes_in += use.bytes_in - before.bytes_in
    network.bytes_out += use.bytes_out - before.bytes_out
  }
}

const isFull = new Error('more than is read')

/** Reads at most `bytesMax` bytes of a body; `truncated` if it had more. */
async function readFirst(answer: Incoming, bytesMax: number): Promise<{ read: Buffer; truncated: boolean }> {
  const chunks: Buffer[] = []
  let length = 0
  try {
    await answer.read((chunk) => {
      chunks.push(chunk)
      length += chunk.length
      if (length > bytesMax) throw isFull
    })
  } catch (error) {
    if (error !== isFull) throw error
    return { read: Buffer.concat(chunks).subarray(0, bytesMax), truncated: true }
  }
  return { read: Buffer.concat(chunks), truncated: false }
}
