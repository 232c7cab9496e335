import { isIP } from 'node:net'
import { bareHost } from './address-rules.ts'
import { checkAddresses, type EgressPurpose, type EgressRules, portOf } from './egress-rules.ts'
import { makeResolveName, type ResolveName } from './resolve-name.ts'
import { UpstreamError } from './connect.ts'

/** Limits of one request (decision D104). */
export interface EgressBounds {
  total_ms: number
  bytesMax: number
  redirectsMax: number
  /** Whether a response that is too long is cut; otherwise it is an error. */
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
/** Limit for resolving a name, and for connecting with TLS. */
export const connectTimeout_ms = 5000

/** The rules for addresses, and the resolver. */
export interface Guard {
  rules: EgressRules
  resolve: ResolveName
}

/**
 * Resolves the host of a URL and checks all its addresses. A literal address is checked too, although it needs no lookup.
 * @throws EgressRefused, UpstreamError, or the reason of `signal`
 */
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
  // The database's name is resolved only if the port is the same. If that fails, its addresses are unknown.
  const ofDatabase =
    database?.port === portOf(url) ? await resolve(database.host.replace(/^\[(.*)\]$/, '$1')).catch(() => []) : []
  checkAddresses(rules, url, purpose, addresses, ofDatabase)
  return addresses
}

const resolveName = makeResolveName()

/** All addresses of a name, resolved by this machine. Throws `UpstreamError` if there is none. */
export async function systemResolve(hostname: string, signal: AbortSignal): Promise<readonly string[]> {
  try {
    return await resolveName(hostname, signal)
  } catch (error) {
    throw new UpstreamError('dns_failed', 'the name could not be resolved', error)
  }
}

/** Waits for a resolver at most `connectTimeout_ms`, even if it ignores its signal. */
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
