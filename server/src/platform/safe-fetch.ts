import { lookup } from 'node:dns/promises'
import { isIP } from 'node:net'
import { bareHost, parseAllowList } from './address-rules.ts'
import { firstHop, type Hop, type HopRequest, nextHop, redirection } from './egress-hop.ts'
import {
  checkAddresses,
  checkUrl,
  type EgressPurpose,
  EgressRefused,
  type EgressRules,
  portOf,
  type RefusalReason,
} from './egress-rules.ts'
import { openWire, WireError, type WireErrorCode, type WireUse } from './wire.ts'

export { EgressRefused, type EgressPurpose, type RefusalReason }

/** What one request may cost (decision D104 points 5 and 6). */
interface Bounds {
  total_ms: number
  bytesMax: number
  redirectsMax: number
  /** Whether an answer that is too long is cut, rather than an error. */
  cuts: boolean
}

const bounds: Record<EgressPurpose, Bounds> = {
  webhook: { total_ms: 15_000, bytesMax: 64 * 1024, redirectsMax: 0, cuts: true },
  tool: { total_ms: 60_000, bytesMax: 5 * 1024 * 1024, redirectsMax: 3, cuts: false },
  sso: { total_ms: 15_000, bytesMax: 64 * 1024, redirectsMax: 0, cuts: false },
  avatar: { total_ms: 15_000, bytesMax: 64 * 1024, redirectsMax: 0, cuts: false },
}
const connectTimeout_ms = 5000

export type EgressErrorCode =
  | WireErrorCode
  | 'timed_out'
  | 'connection_lost'
  | 'bad_answer'
  | 'answer_too_large'
  | 'too_many_redirects'

/** A request that our rules allow and that failed on its way. */
export class EgressError extends Error {
  readonly code: EgressErrorCode
  readonly network: WireUse
  constructor(code: EgressErrorCode, message: string, options: { network: WireUse; cause?: unknown }) {
    super(message, { cause: options.cause })
    this.name = 'EgressError'
    this.code = code
    this.network = options.network
  }
}

export interface EgressRequest extends HopRequest {
  /** Bound of the whole request; the purpose's own bound where that is shorter. */
  timeout_ms?: number
  signal?: AbortSignal
}

export interface EgressAnswer {
  status: number
  /** Lowercase names; values of a repeated header joined by `, `. */
  headers: Record<string, string>
  body: Buffer
  /** Only a webhook's answer can be: it was longer than its bound and the rest was not read. */
  truncated: boolean
  /** Where the answer came from, after redirects. */
  url: string
  redirects: number
  network: WireUse
}

/** The way out to addresses that users choose; there is no other (decision D104). */
export interface Egress {
  /** Judges a URL without resolving its name, for the moment when it is registered. Throws `EgressRefused`. */
  check(url: string | URL, purpose: EgressPurpose): URL
  /**
   * Sends a request. Throws `EgressRefused` before a byte is sent where the rules forbid it (also for a hop of a
   * redirect), `EgressError` where it fails, and the signal's reason where it is aborted. An answer of any status is
   * an answer, also a redirect that the purpose may not follow.
   */
  fetch(url: string | URL, request: EgressRequest): Promise<EgressAnswer>
}

export interface EgressOptions {
  /** Entries of `CADRE_EGRESS_ALLOW`; see `parseAllowList`, whose `AllowListError` is thrown here. */
  allow?: readonly string[]
  /** Ports that this service listens on; a function where they are known only later. */
  ownPorts?: readonly number[] | (() => readonly number[])
  /** Where the database listens; nothing for a unix socket. */
  database?: { host: string; port: number }
  listensOnLoopback?: boolean
  /** All addresses of a name. The system's resolver where it is not given. */
  resolve?: (hostname: string) => Promise<readonly string[]>
}

/** Makes the way out. Every request has a connection of its own, to addresses judged for this request. */
export function makeEgress(options: EgressOptions = {}): Egress {
  const { ownPorts = [], resolve = systemResolve } = options
  const rules: EgressRules = {
    allow: parseAllowList(options.allow ?? []),
    ownPorts: typeof ownPorts === 'function' ? ownPorts : () => ownPorts,
    database: options.database,
    listensOnLoopback: options.listensOnLoopback ?? false,
  }
  return {
    check: (url, purpose) => checkUrl(rules, url, purpose),
    fetch: (url, request) => follow({ rules, resolve }, url, request),
  }
}

interface Guard {
  rules: EgressRules
  resolve: (hostname: string) => Promise<readonly string[]>
}

async function follow(guard: Guard, url: string | URL, request: EgressRequest): Promise<EgressAnswer> {
  const { purpose, timeout_ms = Infinity, signal } = request
  const bound = bounds[purpose]
  const network: WireUse = { bytes_in: 0, bytes_out: 0 }
  const timer = new AbortController()
  const timeout = setTimeout(() => timer.abort(), Math.min(timeout_ms, bound.total_ms))
  const ends = signal ? AbortSignal.any([signal, timer.signal]) : timer.signal
  try {
    let hop = firstHop(guard.rules, url, request)
    for (let redirects = 0; ; redirects++) {
      ends.throwIfAborted()
      const addresses = await judge(guard, hop.url, purpose, ends)
      const answer = await send(hop, addresses, { bound, signal: ends, network })
      const location = redirection(answer.status, answer.headers)
      if (location === undefined || bound.redirectsMax === 0) return { ...answer, redirects, network }
      if (redirects === bound.redirectsMax) {
        throw new EgressError('too_many_redirects', `more than ${bound.redirectsMax} redirects`, { network })
      }
      hop = nextHop(guard.rules, purpose, hop, answer.status, location)
    }
  } catch (error) {
    signal?.throwIfAborted()
    if (error instanceof EgressRefused || error instanceof EgressError) throw error
    if (timer.signal.aborted) throw new EgressError('timed_out', 'no complete answer in time', { network })
    throw failure(error, network)
  } finally {
    clearTimeout(timeout)
  }
}

/** Addresses to connect to, all of them allowed. A literal is its own address: no lookup would be asked about it. */
async function judge(guard: Guard, url: URL, purpose: EgressPurpose, signal: AbortSignal): Promise<readonly string[]> {
  const { rules } = guard
  const resolve = async (name: string) => (isIP(name) === 0 ? inTime(guard.resolve(name), signal) : [name])
  const addresses = await resolve(bareHost(url))
  if (addresses.length === 0) throw new WireError('dns_failed', 'the name has no address')
  const { database } = rules
  // Resolved only for a port that could be the database's; a name that fails then is not worth a refusal.
  const ofDatabase =
    database?.port === portOf(url) ? await resolve(database.host.replace(/^\[(.*)\]$/, '$1')).catch(() => []) : []
  checkAddresses(rules, url, purpose, addresses, ofDatabase)
  return addresses
}

/** Sends one hop over a connection of its own and reads the answer up to its bound. Adds to `network` in any case. */
async function send(
  { url, method, headers, body }: Hop,
  addresses: readonly string[],
  { bound, signal, network }: { bound: Bounds; signal: AbortSignal; network: WireUse },
): Promise<Omit<EgressAnswer, 'redirects' | 'network'>> {
  const wire = await openWire(url.origin, { addresses, connectTimeout_ms })
  try {
    const answer = await wire.client.request({
      path: url.pathname + url.search,
      method,
      headers,
      body: body ?? null,
      signal,
    })
    const { read, truncated } = await readUpTo(answer.body, bound.bytesMax)
    if (truncated && !bound.cuts) {
      throw new EgressError('answer_too_large', `the answer is longer than ${bound.bytesMax} bytes`, { network })
    }
    return { status: answer.statusCode, headers: plainHeaders(answer.headers), body: read, truncated, url: url.href }
  } finally {
    const use = wire.use()
    network.bytes_in += use.bytes_in
    network.bytes_out += use.bytes_out
    await wire.destroy()
  }
}

async function readUpTo(body: AsyncIterable<Buffer>, bytesMax: number): Promise<{ read: Buffer; truncated: boolean }> {
  const chunks: Buffer[] = []
  let length = 0
  for await (const chunk of body) {
    chunks.push(chunk)
    length += chunk.length
    if (length > bytesMax) return { read: Buffer.concat(chunks).subarray(0, bytesMax), truncated: true }
  }
  return { read: Buffer.concat(chunks), truncated: false }
}

function plainHeaders(headers: Record<string, string | string[] | undefined>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [
      name.toLowerCase(),
      Array.isArray(value) ? value.join(', ') : (value ?? ''),
    ]),
  )
}

/** Names of undici's errors for an answer that breaks HTTP. */
const unreadable = new Set(['HTTPParserError', 'HeadersOverflowError', 'ResponseContentLengthMismatchError'])

function failure(error: unknown, network: WireUse): EgressError {
  if (error instanceof WireError) return new EgressError(error.code, error.message, { network, cause: error })
  return error instanceof Error && unreadable.has(error.name)
    ? new EgressError('bad_answer', 'the answer is not HTTP that we understand', { network, cause: error })
    : new EgressError('connection_lost', 'the connection was lost before the answer was complete', {
        network,
        cause: error,
      })
}

async function systemResolve(hostname: string): Promise<readonly string[]> {
  try {
    return (await lookup(hostname, { all: true })).map(({ address }) => address)
  } catch (error) {
    throw new WireError('dns_failed', 'the name could not be resolved', error)
  }
}

/** Waits for a resolver, which cannot be told to stop, no longer than for a connection. */
function inTime<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise<T>((done, fail) => {
    const settle = (finish: () => void): void => {
      clearTimeout(timer)
      signal.removeEventListener('abort', onAbort)
      finish()
    }
    const onAbort = (): void => settle(() => fail(signal.reason as Error))
    const onLate = (): void => settle(() => fail(new WireError('dns_failed', 'the name was not resolved in time')))
    const timer = setTimeout(onLate, connectTimeout_ms)
    signal.addEventListener('abort', onAbort, { once: true })
    work.then(
      (value) => settle(() => done(value)),
      (error: Error) => settle(() => fail(error)),
    )
  })
}
