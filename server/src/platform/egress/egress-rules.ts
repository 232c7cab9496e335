import { isIP } from 'node:net'
import { networkInterfaces } from 'node:os'
import {
  type AllowList,
  bareHost,
  isInside,
  isNamed,
  isPublic,
  loopbackRanges,
  plainAddress,
  type Range,
} from './address-rules.ts'

/** The part of the service that sends a request to an address that a user chose (decision D104). */
export type EgressPurpose = 'webhook' | 'tool' | 'file' | 'sso' | 'issuer' | 'model' | 'client_document' | 'avatar'

export type RefusalReason =
  | 'bad_url'
  | 'scheme'
  | 'user_info'
  | 'fragment'
  | 'port'
  | 'plain_http'
  | 'address'
  | 'own_endpoint'
  | 'header'
  | 'method'

/**
 * The rules forbid the request. Nothing was sent, unless a response redirected to a forbidden address. The message may be
 * shown to the user who chose the address.
 */
export class EgressRefused extends Error {
  readonly reason: RefusalReason
  /** Whether an earlier hop of a redirect was sent, and may have taken effect. */
  sent = false
  constructor(reason: RefusalReason, message: string) {
    super(message)
    this.name = 'EgressRefused'
    this.reason = reason
  }
}

export interface EgressRules {
  allow: AllowList
  /** Ports that this service listens on, at any address of this machine. */
  ownPorts: () => readonly number[]
  /** The database; undefined if it is reached by a unix socket. */
  database: { host: string; port: number } | undefined
  /** The service can only be reached from this machine, so webhooks may go to this machine too. */
  listensOnLoopback: boolean
}

/**
 * Checks everything about a URL that needs no name resolution: scheme, user info, port, and a literal address.
 * @throws EgressRefused
 */
export function checkUrl(rules: EgressRules, text: string | URL, purpose: EgressPurpose): URL {
  const url = URL.parse(String(text))
  if (!url) throw new EgressRefused('bad_url', 'must be an absolute URL')
  if (url.protocol !== 'https:' && url.protocol !== 'http:') {
    throw new EgressRefused('scheme', 'must begin with https:// or http://')
  }
  if (url.username !== '' || url.password !== '') {
    throw new EgressRefused('user_info', 'must not contain a user name or password')
  }
  if (purpose === 'webhook' && String(text).includes('#')) {
    throw new EgressRefused('fragment', 'must not contain a fragment')
  }

  const host = bareHost(url)
  const port = portOf(url)
  if (rules.allow.endpoints.has(`${host}:${port}`)) return url
  if (port !== 443 && port !== 80 && port < 1024) {
    throw new EgressRefused('port', 'the port must be 443, 80 or at least 1024')
  }

  const opened = openedRanges(rules, purpose)
  const isLiteral = isIP(host) !== 0
  const isLocalName = host === 'localhost' || host.endsWith('.localhost')
  const isListed =
    isNamed(rules.allow, host) || (isLiteral ? isInside(host, opened) : isLocalName && isInside('127.0.0.1', opened))
  if (isLiteral) {
    if (isOwnPort(rules, host, port)) throw ownEndpoint()
    if (!isListed && !isPublic(host)) throw notPublic()
  } else if (isLocalName && !isListed) throw notPublic()
  // Requests for these purposes carry client secrets, tokens, keys or private data.
  const isPrivate = purpose === 'webhook' || purpose === 'issuer' || purpose === 'model'
  if (isPrivate && url.protocol === 'http:' && !isListed) {
    throw new EgressRefused('plain_http', 'must begin with https://, unless the operator allows this host')
  }
  return url
}

/**
 * Checks the addresses of a name. One forbidden address is enough to refuse the request, so a name with a public and a
 * private address is refused. `database` are the addresses of the database.
 * @throws EgressRefused
 */
export function checkAddresses(
  rules: EgressRules,
  url: URL,
  purpose: EgressPurpose,
  addresses: readonly string[],
  database: readonly string[],
): void {
  const host = bareHost(url)
  const port = portOf(url)
  if (rules.allow.endpoints.has(`${host}:${port}`)) return
  const named = isNamed(rules.allow, host)
  const opened = openedRanges(rules, purpose)
  for (const address of addresses) {
    // A listed name opens no port: those of this service stay closed.
    const endpoint = `${plainAddress(address)}:${port}`
    if (rules.allow.endpoints.has(endpoint)) continue
    if (isOwnPort(rules, address, port) || isDatabase(rules, address, port, database)) throw ownEndpoint()
    if (!named && !isPublic(address) && !isInside(address, opened)) throw notPublic()
  }
}

/** The port of a URL, or the default of its scheme. */
export function portOf(url: URL): number {
  return url.port === '' ? (url.protocol === 'https:' ? 443 : 80) : Number(url.port)
}

function openedRanges({ allow, listensOnLoopback }: EgressRules, purpose: EgressPurpose): readonly Range[] {
  return listensOnLoopback && purpose === 'webhook' ? [...allow.ranges, ...loopbackRanges] : allow.ranges
}

function isOwnPort({ ownPorts }: EgressRules, address: string, port: number): boolean {
  return ownPorts().includes(port) && isThisMachine(address)
}

function isDatabase({ database }: EgressRules, address: string, port: number, resolved: readonly string[]): boolean {
  if (database?.port !== port) return false
  const known = resolved.map(plainAddress)
  return known.includes(plainAddress(address)) || (known.some(isThisMachine) && isThisMachine(address))
}

/** Whether an address is loopback, unspecified (which connects to loopback) or of an interface of this machine. */
function isThisMachine(text: string): boolean {
  const address = plainAddress(text)
  if (isInside(address, loopbackRanges) || address === '0.0.0.0' || address === '::') return true
  return Object.values(networkInterfaces()).some((list) => list?.some((own) => plainAddress(own.address) === address))
}

function notPublic(): EgressRefused {
  return new EgressRefused(
    'address',
    'the host is not a public address, and the operator has not allowed it by CADRE_EGRESS_ALLOW (loopback, private, or the host)',
  )
}

function ownEndpoint(): EgressRefused {
  return new EgressRefused('own_endpoint', 'the host and port belong to this service')
}
