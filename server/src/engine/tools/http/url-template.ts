import { ToolError } from '../tool.ts'

/** A URL with placeholders for arguments (`{name}`) and for secrets (`${credentials.NAME}`) in its path and query. */
export interface UrlTemplate {
  /** Scheme and authority, without placeholders, so that arguments cannot choose the host. */
  origin: string
  /** Segments of the path. */
  segments: readonly string[]
  /** The query, without its question mark. */
  query: string
  /** Names of the arguments, once each. */
  names: readonly string[]
}

const parts = /^(https?:\/\/[^/?#\\{}$\s@]+)(\/[^?#]*)?(\?[^#]*)?$/i
const place = /(?<!\$)\{([^{}]*)\}/g
const name = /^[A-Za-z_][A-Za-z0-9_.-]{0,63}$/

/** Parses a template. Returns text that completes "url …" for an invalid one. */
export function parseUrlTemplate(text: string): UrlTemplate | string {
  if (/[\s\\#]/.test(text)) return 'must not contain spaces, backslashes or a fragment'
  const [, origin = '', path = '', query = ''] = parts.exec(text) ?? []
  if (origin === '') return 'must begin with http:// or https:// and a host without placeholders'
  if (!URL.canParse(origin)) return 'must be an absolute URL'
  const names = [...`${path}${query}`.matchAll(place)].map(([, inside = '']) => inside)
  const wrong = names.find((inside) => !name.test(inside))
  if (wrong !== undefined) return `has a placeholder that is not an argument's name: {${wrong.slice(0, 40)}}`
  if (/[{}]/.test(`${path}${query}`.replaceAll(place, '').replaceAll(/\$\{[^{}]*\}/g, '')))
    return 'has an unbalanced brace'
  const segments = path.split('/').slice(1)
  if (segments.some((segment) => isDots(segment))) return 'must not contain . or .. as a part of its path'
  return { origin, segments, query: query.slice(1), names: [...new Set(names)] }
}

/**
 * Fills in arguments and secrets, each encoded, so that none can end its segment or parameter.
 * @throws ToolError for a value that would still change the path: an empty one, `.` or `..`
 */
export function fillUrl(
  { origin, segments, query }: UrlTemplate,
  args: Record<string, unknown>,
  fillSecrets: (template: string, encode: (value: string) => string) => string,
): URL {
  const fill = (part: string): string => {
    // Both are filled in one pass, so that an argument that looks like a placeholder stays as it is.
    const pieces = part.split(/((?<!\$)\{[^{}]*\})/)
    return pieces
      .map((piece, i) => (i % 2 === 1 ? encode(argumentText(args, piece.slice(1, -1))) : fillSecrets(piece, encode)))
      .join('')
  }
  const path = segments.map((segment) => {
    const filled = fill(segment)
    if (filled !== segment && (filled === '' || isDots(filled)))
      throw new ToolError('invalid_arguments', `A part of the URL's path must not be empty, "." or "..": ${segment}.`)
    return filled
  })
  const url = new URL(
    `${origin}${path.map((segment) => `/${segment}`).join('')}${query === '' ? '' : `?${fill(query)}`}`,
  )
  if (url.origin !== new URL(origin).origin)
    throw new ToolError('invalid_arguments', 'The URL must keep the origin of the tool.')
  return url
}

/** Whether a URL parser treats a segment as the current or the parent folder. */
function isDots(segment: string): boolean {
  return /^(\.|%2e){1,2}$/i.test(segment)
}

function encode(text: string): string {
  return encodeURIComponent(text.toWellFormed())
}

function argumentText(args: Record<string, unknown>, key: string): string {
  const value = Object.hasOwn(args, key) ? args[key] : undefined
  if (typeof value === 'string') return value
  if (typeof value === 'number' || typeof value === 'boolean') return String(value)
  throw new ToolError('invalid_arguments', `The URL needs the argument ${key}: a text, a number, true or false.`)
}

/**
 * Adds arguments to a query: the items of a list one by one, values other than text as JSON. Null and undefined are
 * left out.
 */
export function addToQuery(url: URL, args: Record<string, unknown>): void {
  for (const [key, value] of Object.entries(args)) {
    for (const item of Array.isArray(value) ? value : [value]) {
      if (item === null || item === undefined) continue
      url.searchParams.append(key, typeof item === 'string' ? item.toWellFormed() : JSON.stringify(item))
    }
  }
}
