import { isIP } from 'node:net'
import ipaddr from 'ipaddr.js'

type Address = ipaddr.IPv4 | ipaddr.IPv6
/** A network and the length of its prefix. */
export type Range = [Address, number]

/** IPv4 ranges that are not public: IANA's special-purpose ranges (decision D104). */
const special4 = ranges(`
  0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.0.2.0/24 192.88.99.0/24
  192.168.0.0/16 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/4 240.0.0.0/4`)

/** The only public range of IPv6; it excludes ::1, mapped addresses, NAT64 and local ones. */
const public6 = ranges('2000::/3')
const special6 = ranges('2001::/23 2001:db8::/32 2002::/16 3fff::/20')

/** The ranges of `loopback` in an allow list. No keyword opens link-local (cloud metadata) and shared ranges. */
export const loopbackRanges: readonly Range[] = ranges('127.0.0.0/8 ::1/128')
const privateRanges = ranges('10.0.0.0/8 172.16.0.0/12 192.168.0.0/16 fc00::/7')

/** What an operator additionally allows (`CADRE_EGRESS_ALLOW`, decision D104). */
export interface AllowList {
  ranges: readonly Range[]
  /** Host names as `URL` normalizes them, without a trailing dot. */
  names: ReadonlySet<string>
  /** `.example.com` for `*.example.com`. */
  suffixes: readonly string[]
  /** `host:port`; an exact entry also opens ports below 1024 and those of this service. */
  endpoints: ReadonlySet<string>
}

/** An invalid entry of an allow list; the message names it. */
export class AllowListError extends Error {}

/**
 * Reads an allow list: `loopback`, `private`, a range or address (`10.1.0.0/16`, `10.1.2.3`, `fd00::/8`), a host name,
 * `*.suffix` (its subdomains, not itself), or `host:port` (`receiver:9000`, `127.0.0.1:9000`, `[::1]:9000`). A listed
 * name may resolve to any address. A listed address opens every name that resolves to it.
 * @throws AllowListError
 */
export function parseAllowList(entries: readonly string[]): AllowList {
  const opened: Range[] = []
  const names = new Set<string>()
  const suffixes: string[] = []
  const endpoints = new Set<string>()
  for (const entry of entries.map((text) => text.trim().toLowerCase()).filter((text) => text !== '')) {
    const endpoint = /^(.+):(\d{1,5})$/.exec(entry)
    const suffix = entry.startsWith('*.') ? hostName(entry.slice(2)) : undefined
    if (entry === 'loopback') opened.push(...loopbackRanges)
    else if (entry === 'private') opened.push(...privateRanges)
    else if (isIP(entry) !== 0) opened.push(parseRange(`${entry}/${isIP(entry) === 4 ? 32 : 128}`))
    else if (entry.includes('/')) opened.push(requireRange(entry))
    else if (suffix !== undefined) suffixes.push(`.${suffix}`)
    else if (endpoint) endpoints.add(requireEndpoint(endpoint, entry))
    else names.add(requireHost(entry, entry))
  }
  return { ranges: opened, names, suffixes, endpoints }
}

/** Whether the list contains this host, exactly or by a suffix. */
export function isNamed({ names, suffixes }: AllowList, host: string): boolean {
  return names.has(host) || suffixes.some((suffix) => host.endsWith(suffix) && host.length > suffix.length)
}

/** Whether an address is public (decision D104); false for text that is no address, and for addresses with a zone. */
export function isPublic(text: string): boolean {
  const address = parseAddress(text)
  if (!address) return false
  if (address.kind() === 'ipv4') return !inRanges(address, special4)
  return inRanges(address, public6) && !inRanges(address, special6)
}

/** Whether an address is in one of the ranges. Mapped IPv4 (`::ffff:…`) counts as IPv6. */
export function isInside(text: string, ranges: readonly Range[]): boolean {
  const address = parseAddress(text)
  return address !== undefined && inRanges(address, ranges)
}

/** Normalizes an address, so that equal destinations are equal text; mapped IPv4 becomes IPv4. */
export function plainAddress(text: string): string {
  const address = parseAddress(text)
  if (!address) return text
  return address instanceof ipaddr.IPv6 && address.isIPv4MappedAddress()
    ? address.toIPv4Address().toString()
    : address.toString()
}

function parseAddress(text: string): Address | undefined {
  return isIP(text) === 0 || text.includes('%') ? undefined : ipaddr.parse(text)
}

function inRanges(address: Address, ranges: readonly Range[]): boolean {
  return ranges.some((range) => range[0].kind() === address.kind() && address.match(range[0], range[1]))
}

function ranges(text: string): Range[] {
  return text.trim().split(/\s+/).map(parseRange)
}

function parseRange(text: string): Range {
  return ipaddr.parseCIDR(text)
}

function requireRange(entry: string): Range {
  const address = entry.slice(0, entry.indexOf('/'))
  if (isIP(address) === 0 || !ipaddr.isValidCIDR(entry)) {
    throw new AllowListError(`"${entry}" is not a range such as 10.1.0.0/16.`)
  }
  return parseRange(entry)
}

function requireHost(text: string, entry: string): string {
  const host = hostName(text)
  if (host === undefined) {
    throw new AllowListError(
      `"${entry}" is none of loopback, private, a range (10.1.0.0/16), an address, a host name, *.suffix or host:port.`,
    )
  }
  return host
}

function requireEndpoint([, host = '', port = '']: RegExpExecArray, entry: string): string {
  if (Number(port) < 1 || Number(port) > 65_535) throw new AllowListError(`"${entry}" has a port outside 1 to 65535.`)
  return `${requireHost(host, entry)}:${Number(port)}`
}

/** A host as `URL` normalizes it (`bücher.example` becomes `xn--…`), for comparisons. */
function hostName(text: string): string | undefined {
  if (!/^[^\s/?#@\\*]+$/.test(text)) return undefined
  const url = URL.parse(`http://${text}/`)
  return url && url.port === '' && url.hostname !== '' ? bareHost(url) : undefined
}

/** The host of a URL without the brackets of IPv6 and without a trailing dot. */
export function bareHost(url: URL): string {
  return url.hostname.replace(/^\[(.*)\]$/, '$1').replace(/\.$/, '')
}
