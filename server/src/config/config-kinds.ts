import { readFileSync } from 'node:fs'
import { isIP } from 'node:net'
import { resolve } from 'node:path'
import { isObject } from '#contract/core/merge-patch.ts'
import { readPriceTable, type PriceTable } from '#contract/models/price-table.ts'

/** How the text of a setting is understood. */
export interface Kind<T> {
  /** What is allowed, to finish the sentence "allowed: …". */
  allowed: string
  /** The value, or undefined when the text is not allowed. */
  parse: (text: string) => T | undefined
  /** The part of a refused text to complain about; the whole where this is missing. */
  culprit?: (text: string) => string
}

/** A whole number within bounds, both of them allowed. */
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

/** A share of a whole. */
export const ratio: Kind<number> = {
  allowed: 'a number from 0 to 1, such as 0.1',
  parse: (text) => (/^(0|1|[01]?\.\d{1,9}|1\.0{1,9})$/.test(text) && Number(text) <= 1 ? Number(text) : undefined),
}

/** Headers as `name=value` with commas between, values percent-encoded (OpenTelemetry's form). */
export const headerList: Kind<Record<string, string>> = {
  allowed: 'name=value with commas between, values percent-encoded',
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

/** One of a few words. */
export function oneOf<const Word extends string>(...options: Word[]): Kind<Word> {
  return { allowed: options.join(', '), parse: (text) => options.find((word) => word === text) }
}

/** `on` or `off`. */
export const onOff: Kind<boolean> = {
  allowed: 'on, off, 1, 0',
  parse: (text) => (text === 'on' || text === '1' ? true : text === 'off' || text === '0' ? false : undefined),
}

/** The values that OpenTelemetry's switch for content has had: whether spans are to have it. */
export const captureContent: Kind<boolean> = {
  allowed: 'true, false, span_only, event_only, span_and_event, no_content',
  parse(text) {
    const value = text.toLowerCase()
    if (['true', 'span_only', 'span_and_event'].includes(value)) return true
    return ['false', 'event_only', 'no_content'].includes(value) ? false : undefined
  },
}

/** Text of a form that a regular expression describes. */
export function pattern(expression: RegExp, allowed: string): Kind<string> {
  return { allowed, parse: (text) => (expression.test(text) ? text : undefined) }
}

/** Text with a number of characters (code points) within bounds, both of them allowed. */
export function characters(min: number, max: number): Kind<string> {
  const parse = (text: string): string | undefined => {
    const length = [...text].length
    return length >= min && length <= max ? text : undefined
  }
  return { allowed: `${min} to ${max} characters`, parse }
}

/** A folder, made absolute against the current one. */
export const folder: Kind<string> = {
  allowed: 'the path of a folder',
  parse: (text) => (text.includes('\0') ? undefined : resolve(text)),
}

/** An address to listen on. */
export const listeningHost: Kind<string> = {
  allowed: 'an IP address or a host name, such as 127.0.0.1, :: or localhost',
  parse: (text) => (isIP(text) !== 0 || isHostName(text) ? text : undefined),
}

/** Scheme, host and port, exactly as a browser sends them in `RequestSource`. */
export const origin: Kind<string> = {
  allowed: 'an origin without a path, such as https://cadre.example.com',
  parse: (text) => {
    const url = httpUrl(text)
    return url && url.origin === text.replace(/\/$/, '') ? url.origin : undefined
  },
}

/** Where people and programs find the service: an origin, and the path before which a proxy in front has put it. */
export const publicAddress: Kind<string> = {
  allowed: 'an origin, or one with a path below which a proxy has the service, such as https://example.com/cadre',
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

/** Where an OAuth client may be sent back to: https, or http on a loopback address (decision D77). */
export const redirectUri: Kind<string> = {
  allowed: 'an https URL (http for loopback addresses only) without fragment and wildcard',
  parse: (text) => {
    const url = httpUrl(text)
    if (!url || url.hash !== '' || text.includes('#') || text.includes('*')) return undefined
    return url.protocol === 'https:' || isLoopback(url.hostname) ? text : undefined
  },
}

/** An identity provider: https, or http on a loopback address. It is compared as it is, so nothing is taken off it. */
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

/** Scopes of OpenID Connect, `openid` among them. */
export const scopeList: Kind<string> = {
  allowed: 'words with spaces between, "openid" among them',
  parse: (text) => {
    const scopes = text.split(' ').filter((word) => word !== '')
    return scopes.includes('openid') && scopes.every((word) => /^[\x21\x23-\x5b\x5d-\x7e]+$/.test(word))
      ? scopes.join(' ')
      : undefined
  },
}

/** What stands after the `@` of an e-mail address. */
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

/** What webhooks and tools may reach beyond public addresses (decision D104). */
export const egressRule: Kind<string> = {
  allowed: 'loopback, private, a network (10.1.0.0/16), an address, a host name, *.suffix or host:port',
  parse: (text) => {
    const [, host = text, port] = /^(.+|\[.+\]):(\d{1,5})$/.exec(isNetwork(text) ? '' : text) ?? []
    if (port !== undefined && (Number(port) < 1 || Number(port) > 65_535)) return undefined
    const bare = host.replace(/^\[(.*)\]$/, '$1')
    return isNetwork(host) || isIP(bare) !== 0 || isHostName(host.replace(/^\*\./, '')) ? text : undefined
  },
}

/** A setting that is a JSON object itself, or the path of a file with one. Throws where it is neither. */
function jsonOrFile(text: string): unknown {
  return JSON.parse(text.trimStart().startsWith('{') ? text : readFileSync(text, 'utf8'))
}

/** Prices of models by their names: JSON itself, or the path of a file with it. */
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

/** What one model can hold, as an operator says it. */
export interface ModelLimit {
  context?: number
  output?: number
  reasons?: boolean
}

const modelLimitMembers = ['context', 'output', 'reasons']
const modelTokensMax = 1_000_000_000

/** Limits of models by their names: JSON itself, or the path of a file with it. */
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

/** Several of a kind between commas; empty entries are left out. */
export function listOf<T>(kind: Kind<T>): Kind<T[]> {
  const entries = (text: string): string[] =>
    text
      .split(',')
      .map((entry) => entry.trim())
      .filter((entry) => entry !== '')
  return {
    allowed: `a list with commas between, of: ${kind.allowed}`,
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
