import { readFileSync } from 'node:fs'
import { isIP } from 'node:net'
import { resolve } from 'node:path'
import { isObject } from '#contract/core/merge-patch.ts'
import { readPriceTable, type PriceTable } from '#contract/models/price-table.ts'

/** How the text of a setting is parsed. */
export interface Kind<T> {
  /** Allowed values, to complete "Allowed: …". */
  allowed: string
  /** The value; undefined if the text is not allowed. */
  parse: (text: string) => T | undefined
  /** The invalid part of a refused text; defaults to all of it. */
  culprit?: (text: string) => string
}

/** An integer from `min` to `max`. */
export function wholeNumber(min: number, max: number): Kind<number> {
  const parse = (text: string): number | undefined => {
    const value = Number(text)
    return /^\d{1,15}$/.test(text) && value >= min && value <= max ? value : undefined
  }
  return { allowed: `a whole number from ${min} to ${max}`, parse }
}

/** A TCP port to listen on, or none. */
export const portOrOff: Kind<number | 'off'> = {
  allowed: 'a whole number from 0 to 65535, off',
  parse: (text) => (text === 'off' ? 'off' : wholeNumber(0, 65_535).parse(text)),
}

/** A number above zero, with or without decimals. */
export const positiveNumber: Kind<number> = {
  allowed: 'a number above 0, such as 2 or 0.5',
  parse: (text) => (/^\d{1,9}(\.\d{1,9})?$/.test(text) && Number(text) > 0 ? Number(text) : undefined),
}

/** A ratio from 0 to 1. */
export const ratio: Kind<number> = {
  allowed: 'a number from 0 to 1, such as 0.1',
  parse: (text) => (/^(0|1|[01]?\.\d{1,9}|1\.0{1,9})$/.test(text) && Number(text) <= 1 ? Number(text) : undefined),
}

/** Headers as `name=value` separated by commas, with percent-encoded values (OpenTelemetry's format). */
export const headerList: Kind<Record<string, string>> = {
  allowed: 'name=value separated by commas, with percent-encoded values',
  parse: (text) => {
    const entries = text.split(',').map((entry) => /^([^=]*)=([^]*)$/.exec(entry) ?? [])
    const headers: Record<string, string> = {}
    for (const [, name = '', encoded = ''] of entries.map((parts) => parts.map((part) => part.trim()))) {
      const value = decoded(encoded)
      if (!/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(name) || value === undefined || !/^[\x20-\x7e]*$/.test(value))
        return undefined
      headers[name] = value
    }
    return headers
  },
}

function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}

/** One of the given words. */
export function oneOf<const Word extends string>(...options: Word[]): Kind<Word> {
  return { allowed: options.join(', '), parse: (text) => options.find((word) => word === text) }
}

/** `on` or `off`. */
export const onOff: Kind<boolean> = {
  allowed: 'on, off, 1, 0',
  parse: (text) => (text === 'on' || text === '1' ? true : text === 'off' || text === '0' ? false : undefined),
}

/** Whether spans have content, in all forms that OpenTelemetry's variable has had. */
export const captureContent: Kind<boolean> = {
  allowed: 'true, false, span_only, event_only, span_and_event, no_content',
  parse(text) {
    const value = text.toLowerCase()
    if (['true', 'span_only', 'span_and_event'].includes(value)) return true
    return ['false', 'event_only', 'no_content'].includes(value) ? false : undefined
  },
}

/** Text that matches a regular expression. */
export function pattern(expression: RegExp, allowed: string): Kind<string> {
  return { allowed, parse: (text) => (expression.test(text) ? text : undefined) }
}

/** Text of `min` to `max` characters (code points). */
export function characters(min: number, max: number): Kind<string> {
  const parse = (text: string): string | undefined => {
    const length = [...text].length
    return length >= min && length <= max ? text : undefined
  }
  return { allowed: `${min} to ${max} characters`, parse }
}

/** A folder; a relative path is resolved against the current folder. */
export const folder: Kind<string> = {
  allowed: 'the path of a folder',
  parse: (text) => (text.includes('\0') ? undefined : resolve(text)),
}

/** An address to listen on. */
export const listeningHost: Kind<string> = {
  allowed: 'an IP address or a host name, such as 127.0.0.1, :: or localhost',
  parse: (text) => (isIP(text) !== 0 || isHostName(text) ? text : undefined),
}

/** Scheme, host and port, exactly as a browser sends them in `Origin`. */
export const origin: Kind<string> = {
  allowed: 'an origin without a path, such as https://cadre.example.com',
  parse: (text) => {
    const url = httpUrl(text)
    return url && url.origin === text.replace(/\/$/, '') ? url.origin : undefined
  },
}

/** The public URL of the service: an origin, and the path below which a proxy serves it. */
export const publicAddress: Kind<string> = {
  allowed:
    'an origin, optionally with the path below which a proxy serves the service, such as https://example.com/cadre',
  parse: (text) => {
    const url = httpUrl(text)
    const written = url && `${url.origin}${url.pathname}`.replace(/\/$/, '')
    return url && written === text.replace(/\/$/, '') && /^(\/[\w.~-]+)*\/?$/.test(url.pathname) ? written : undefined
  },
}

/** Base address of an HTTP API. User info is refused: keys have separate settings. */
export const baseUrl: Kind<string> = {
  allowed: 'an http or https URL without user name, query and fragment, such as https://models.example.com/v1',
  parse: (text) => {
    const url = httpUrl(text)
    return url && url.search === '' && url.hash === '' ? text.replace(/(?<!\/)\/+$/, '') : undefined
  },
}

/** A redirect URI of an OAuth client: https, or http on a loopback address (decision D77). */
export const redirectUri: Kind<string> = {
  allowed: 'an https URL (http for loopback addresses only) without fragment and wildcard',
  parse: (text) => {
    const url = httpUrl(text)
    if (!url || url.hash !== '' || text.includes('#') || text.includes('*')) return undefined
    return url.protocol === 'https:' || isLoopback(url.hostname) ? text : undefined
  },
}

/** The issuer of an identity provider: https, or http on a loopback address. It is compared literally, so it is not normalized. */
export const issuerUrl: Kind<string> = {
  allowed:
    "an https URL (http for loopback addresses only) without user name, query, fragment and '/.well-known/…', such as https://id.example.com",
  parse: (text) => {
    const url = httpUrl(text)
    if (!url || url.search !== '' || url.hash !== '' || /[?#]/.test(text) || text.includes('/.well-known/'))
      return undefined
    return url.protocol === 'https:' || isLoopback(url.hostname) ? text : undefined
  },
}

/** Scopes of OpenID Connect, including `openid`. */
export const scopeList: Kind<string> = {
  allowed: 'words separated by spaces, including "openid"',
  parse: (text) => {
    const scopes = text.split(' ').filter((word) => word !== '')
    return scopes.includes('openid') && scopes.every((word) => /^[\x21\x23-\x5b\x5d-\x7e]+$/.test(word))
      ? scopes.join(' ')
      : undefined
  },
}

/** The domain of e-mail addresses. */
export const domainName: Kind<string> = {
  allowed: 'a domain such as example.com',
  parse: (text) => (isHostName(text) && text.includes('.') && !text.endsWith('.') ? text : undefined),
}

/** A PostgreSQL URL. */
export const databaseUrl: Kind<string> = {
  allowed: 'a URL such as postgres://user:password@host:5432/cadre',
  parse: (text) => (/^postgres(ql)?:$/.test(URL.parse(text)?.protocol ?? '') ? text : undefined),
}

/** An address or a network (`10.0.0.0/8`). */
export const network: Kind<string> = {
  allowed: 'an address or network, such as 10.1.2.3 or 10.0.0.0/8',
  parse: (text) => (isNetwork(text) ? text : undefined),
}

/** An entry of `CADRE_EGRESS_ALLOW` (decision D104). */
export const egressRule: Kind<string> = {
  allowed: 'loopback, private, a network (10.1.0.0/16), an address, a host name, *.suffix or host:port',
  parse: (text) => {
    const [, host = text, port] = /^(.+|\[.+\]):(\d{1,5})$/.exec(isNetwork(text) ? '' : text) ?? []
    if (port !== undefined && (Number(port) < 1 || Number(port) > 65_535)) return undefined
    const bare = host.replace(/^\[(.*)\]$/, '$1')
    return isNetwork(host) || isIP(bare) !== 0 || isHostName(host.replace(/^\*\./, '')) ? text : undefined
  },
}

/** Parses a setting that is a JSON object or the path of a file with one. Throws if it is neither. */
function jsonOrFile(text: string): unknown {
  return JSON.parse(text.trimStart().startsWith('{') ? text : readFileSync(text, 'utf8'))
}

/** Prices by model name: JSON, or the path of a file with it. */
export const modelPriceTable: Kind<PriceTable> = {
  allowed:
    'an object, or a file with one, of provider/model: {"input", "cached_input", "cache_write", "output", "long"}, numbers from 0 to 1000000',
  parse: (text) => {
    try {
      return readPriceTable(jsonOrFile(text))
    } catch {
      return undefined
    }
  },
}

/** Limits of a model that an operator sets, in tokens, and whether it reasons. */
export interface ModelLimit {
  context?: number
  output?: number
  reasons?: boolean
}

const modelLimitMembers = ['context', 'output', 'reasons']
const modelTokensMax = 1_000_000_000

/** Limits by model name: JSON, or the path of a file with it. */
export const modelLimitTable: Kind<ReadonlyMap<string, ModelLimit>> = {
  allowed: `an object, or a file with one, of provider/model: {"context", "output"} whole numbers from 1 to ${modelTokensMax}, {"reasons"} true or false`,
  parse: (text) => {
    try {
      const table = jsonOrFile(text)
      return isObject(table) &&
        Object.entries(table).every(([name, limit]) => name.includes('/') && isModelLimit(limit))
        ? new Map(Object.entries(table) as [string, ModelLimit][])
        : undefined
    } catch {
      return undefined
    }
  },
}

function isModelLimit(limit: unknown): limit is ModelLimit {
  if (!isObject(limit) || Object.keys(limit).some((member) => !modelLimitMembers.includes(member))) return false
  const { context, output, reasons } = limit
  const isCount = (count: unknown): boolean =>
    count === undefined || (Number.isInteger(count) && Number(count) >= 1 && Number(count) <= modelTokensMax)
  return isCount(context) && isCount(output) && (reasons === undefined || typeof reasons === 'boolean')
}

/** A list of values separated by commas; empty entries are ignored. */
export function listOf<T>(kind: Kind<T>): Kind<T[]> {
  const entries = (text: string): string[] =>
    text
      .split(',')
      .map((entry) => entry.trim())
      .filter((entry) => entry !== '')
  return {
    allowed: `a comma-separated list of: ${kind.allowed}`,
    parse: (text) => {
      const values = entries(text).map(kind.parse)
      return values.every((value) => value !== undefined) ? values : undefined
    },
    culprit: (text) => entries(text).find((entry) => kind.parse(entry) === undefined) ?? text,
  }
}

function httpUrl(text: string): URL | undefined {
  const url = /\s/.test(text) ? null : URL.parse(text)
  return url && /^https?:$/.test(url.protocol) && url.username === '' && url.password === '' ? url : undefined
}

function isHostName(text: string): boolean {
  return (
    text.length <= 253 &&
    /^[a-z0-9_]([a-z0-9_-]{0,62})(\.[a-z0-9_]([a-z0-9_-]{0,62}))*\.?$/i.test(text) &&
    !/^[\d.]+$/.test(text)
  )
}

function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '[::1]' || (isIP(host) === 4 && host.startsWith('127.'))
}

function isNetwork(text: string): boolean {
  const [address = '', bits, ...rest] = text.split('/')
  const version = isIP(address)
  if (version === 0 || address.includes('%') || rest.length > 0) return false
  return bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= (version === 4 ? 32 : 128))
}
