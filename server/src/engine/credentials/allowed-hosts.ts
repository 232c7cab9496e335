/**
 * Where the value of a credential may be sent, as patterns. None: nowhere, until a tool is registered with it. Null of one that was kept
 * before hosts were named: anywhere.
 */
export type AllowedHosts = readonly string[] | null

/** A pattern, taken apart. */
interface HostPattern {
  /** Without the `*.` of a pattern for names below it. */
  host: string
  isWildcard: boolean
  /** Undefined for any. */
  port: string | undefined
}

const shape = /^(\*\.)?(\[[0-9a-f:.]+\]|[a-z0-9.-]+)(?::(\d{1,5}))?$/

/**
 * A pattern as it is kept, in lower case; undefined where it is none: a host (`api.example.com`, `[::1]`) or all names below one
 * (`*.example.com`, not the host itself), with a port or for any.
 */
export function normalPattern(text: string): string | undefined {
  const pattern = parsePattern(text.toLowerCase())
  if (!pattern) return undefined
  const { host, isWildcard, port } = pattern
  const name = hostOf(`http://${host}`)
  // A wildcard for all of a top-level domain would name no one in particular.
  if (name === undefined || (isWildcard && !/^[^.[]+\..*[a-z-]/.test(name))) return undefined
  if (port !== undefined && (Number(port) < 1 || Number(port) > 65_535)) return undefined
  return `${isWildcard ? '*.' : ''}${name}${port === undefined ? '' : `:${Number(port)}`}`
}

/** Whether a credential may be sent to the host of a URL. */
export function mayBeSentTo(allowed: AllowedHosts, url: string): boolean {
  if (allowed === null) return true
  const target = URL.canParse(url) ? new URL(url) : undefined
  const name = target && hostOf(target.origin)
  if (!target || name === undefined) return false
  const port = target.port === '' ? (target.protocol === 'https:' ? '443' : '80') : target.port
  return allowed.some((text) => {
    const pattern = parsePattern(text)
    if (!pattern || (pattern.port !== undefined && pattern.port !== port)) return false
    return pattern.isWildcard ? name.endsWith(`.${pattern.host}`) : name === pattern.host
  })
}

/** Whether hosts that were not allowed before are now. */
export function allowsMore(before: AllowedHosts, after: readonly string[]): boolean {
  return before !== null && before.length > 0 && after.some((pattern) => !before.includes(pattern))
}

/** The host and port of a URL as a pattern for it. */
export function patternOf(url: string): string | undefined {
  return URL.canParse(url) ? normalPattern(new URL(url).host) : undefined
}

function parsePattern(text: string): HostPattern | undefined {
  const [, wildcard, host, port] = shape.exec(text) ?? []
  return host === undefined ? undefined : { host, isWildcard: wildcard !== undefined, port }
}

/** As URLs have it: numbers of addresses in one form, names without a dot at their end. */
function hostOf(url: string): string | undefined {
  const { hostname } = URL.canParse(url) ? new URL(url) : { hostname: '' }
  const name = hostname.replace(/\.$/, '')
  return name === '' || name.startsWith('.') || name.includes('..') ? undefined : name
}
