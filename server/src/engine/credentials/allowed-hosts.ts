/**
 * Patterns of the hosts to which a credential may be sent. An empty list allows none, until a tool is registered with
 * the credential. Null allows any host, for a credential that was stored before patterns existed.
 */
export type AllowedHosts = readonly string[] | null

/** A parsed pattern. */
interface HostPattern {
  /** Without the `*.` of a wildcard. */
  host: string
  isWildcard: boolean
  /** Undefined for any port. */
  port: string | undefined
}

const shape = /^(\*\.)?(\[[0-9a-f:.]+\]|[a-z0-9.-]+)(?::(\d{1,5}))?$/

/**
 * The normal form of a pattern in lower case; undefined for anything else. A pattern is a host (`api.example.com`,
 * `[::1]`) or a wildcard for all names below one (`*.example.com`, without the host itself), with or without a port.
 */
export function normalPattern(text: string): string | undefined {
  const pattern = parsePattern(text.toLowerCase())
  if (!pattern) return undefined
  const { host, isWildcard, port } = pattern
  const name = hostOf(`http://${host}`)
  // Rejects a wildcard for a whole top-level domain.
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

/** The host as in URLs: one form for each address, names without a trailing dot. */
function hostOf(url: string): string | undefined {
  const { hostname } = URL.canParse(url) ? new URL(url) : { hostname: '' }
  const name = hostname.replace(/\.$/, '')
  return name === '' || name.startsWith('.') || name.includes('..') ? undefined : name
}
