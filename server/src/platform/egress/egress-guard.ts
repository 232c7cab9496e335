import { isIP } from 'node:net'
import { bareHost } from './address-rules.ts'
import { checkAddresses, type EgressPurpose, type EgressRules, portOf } from './egress-rules.ts'
import { makeResolveName, type ResolveName } from './resolve-name.ts'
import { UpstreamError } from './connect.ts'

/** What one request may cost (decision D104). */
export interface EgressBounds {
  total_ms: number
  bytesMax: number
  redirectsMax: number
  /** Whether an answer that is too long is cut, rather than an error. */
  cuts: boolean
}

export const egressBounds: Readonly<Record<EgressPurpose, EgressBounds>> = {
  webhook: { total_ms: 15_000, bytesMax: 64 * 1024, redirectsMax: 0, cuts: true },
  tool: { total_ms: 60_000, bytesMax: 5 * 1024 * 1024, redirectsMax: 3, cuts: false },
  file: { total_ms: 30_000, bytesMax: 20 * 1024 * 1024, redirectsMax: 3, cuts: false },
  sso: { total_ms: 15_000, bytesMax: 64 * 1024, redirectsMax: 0, cuts: false },
  issuer: { total_ms: 15_000, bytesMax: 256 * 1024, redirectsMax: 0, cuts: false },
  // Calls of models have separate limits: `callLimits`.
  model: { total_ms: 600_000, bytesMax: 64 * 1024 * 1024, redirectsMax: 0, cuts: false },
  client_document: { total_ms: 5000, bytesMax: 5 * 1024, redirectsMax: 0, cuts: false },
  avatar: { total_ms: 15_000, bytesMax: 64 * 1024, redirectsMax: 0, cuts: false },
}
/** Bound of resolving, and of connecting with TLS. */
export const connectTimeout_ms = 5000

/** What judges the addresses of a request. */
export interface Guard {
  rules: EgressRules
  resolve: ResolveName
}

/** Addresses to connect to, all of them allowed. A literal is its own address: no lookup would be asked about it. */
export async function judge(
  guard: Guard,
  url: URL,
  purpose: EgressPurpose,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const { rules } = guard
  const resolve = async (name: string) => (isIP(name) === 0 ? inTime(guard.resolve, name, signal) : [name])
  const addresses = await resolve(bareHost(url))
  if (addresses.length === 0) throw new UpstreamError('dns_failed', 'the name has no address')
  const { database } = rules
  // Resolved only for a port that could be the database's; a name that fails then is not worth a refusal.
  const ofDatabase =
    database?.port === portOf(url) ? await resolve(database.host.replace(/^\[(.*)\]$/, '$1')).catch(() => []) : []
  checkAddresses(rules, url, purpose, addresses, ofDatabase)
  return addresses
}

const resolveName = makeResolveName()

/** All addresses of a name as this machine knows it, as a `UpstreamError` where there is none. */
export async function systemResolve(hostname: string, signal: AbortSignal): Promise<readonly string[]> {
  try {
    return await resolveName(hostname, signal)
  } catch (error) {
    throw new UpstreamError('dns_failed', 'the name could not be resolved', error)
  }
}

/** Waits for a resolver, which may ignore its abort signal, no longer than for a connection. */
function inTime(resolve: ResolveName, hostname: string, signal: AbortSignal): Promise<readonly string[]> {
  const over = new AbortController()
  return new Promise((done, fail) => {
    const settle = (finish: () => void): void => {
      clearTimeout(timer)
      signal.removeEventListener('abort', onAbort)
      finish()
      over.abort()
    }
    const onAbort = (): void => settle(() => fail(signal.reason as Error))
    const onLate = (): void => settle(() => fail(new UpstreamError('dns_failed', 'the name was not resolved in time')))
    const timer = setTimeout(onLate, connectTimeout_ms)
    signal.addEventListener('abort', onAbort, { once: true })
    resolve(hostname, over.signal).then(
      (value) => settle(() => done(value)),
      (error: Error) => settle(() => fail(error)),
    )
  })
}
