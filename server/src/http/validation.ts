import { Ajv, type ValidateFunction } from 'ajv'
import { cut, issueOf, meant, overflowed } from '#contract/core/issues.ts'
import { bounds } from '#contract/core/limits.ts'
import { isObject } from '#contract/core/merge-patch.ts'
import { invalid, type Issue } from '#contract/core/problems.ts'
import { parseTimestamp } from '#contract/core/timestamps.ts'

const every = makeAjv(true)
/** Stops at the first error, for values too large to report all errors. */
const first = makeAjv(false)

function makeAjv(allErrors: boolean): Ajv {
  const ajv = new Ajv({ allErrors, verbose: true, strict: false, useDefaults: true, ownProperties: true })
  ajv.addFormat('timestamp', (text) => parseTimestamp(text) !== undefined)
  ajv.addFormat('date-time', (text) => parseTimestamp(text) !== undefined)
  ajv.addFormat('http-url', isHttpUrl)
  ajv.addFormat('uri', isHttpUrl)
  ajv.addFormat('email', /^[^\s@]{1,64}@[^\s@.]+(\.[^\s@.]+)+$/)
  ajv.addKeyword({
    keyword: 'x-max-json-bytes',
    validate: (max: number, value: unknown) => Buffer.byteLength(JSON.stringify(value)) <= max,
  })
  ajv.addKeyword({
    keyword: 'x-future',
    // Text that is not a timestamp is an error of `format`.
    validate: (_: boolean, text: string) => !(Date.parse(parseTimestamp(text) ?? '9999-12-31') <= Date.now()),
  })
  for (const keyword of ['x-secret', 'x-name', 'x-ref', 'x-asked-without', 'x-made-by-command'])
    ajv.addKeyword({ keyword })
  return ajv
}

function isHttpUrl(text: string): boolean {
  const url = URL.parse(text)
  return url !== null && (url.protocol === 'http:' || url.protocol === 'https:')
}

const compiled = { every: new WeakMap<object, ValidateFunction>(), first: new WeakMap<object, ValidateFunction>() }

/**
 * Validates `value` against a schema of the contract and fills in defaults. Returns at most one issue per field and
 * `bounds.issues` in total; none if the value is valid. For a value with more than `bounds.values_checked` parts only
 * the first issue is returned: half a million invalid values must not keep the process busy.
 */
export function check(schema: object, value: unknown): Issue[] {
  const kind = isSmall(value) ? 'every' : 'first'
  let validate = compiled[kind].get(schema)
  if (!validate) compiled[kind].set(schema, (validate = (kind === 'every' ? every : first).compile(schema)))
  if (validate(value)) return []
  const errors = validate.errors ?? []
  // The errors reference the value, which must not stay in memory.
  validate.errors = null
  const byField = new Map<string, Issue>()
  // One issue per field: empty text violates both `minLength` and `pattern`.
  for (const issue of meant(errors).map((error) => issueOf(error)))
    if (!byField.has(issue.field)) byField.set(issue.field, issue)
  return [...byField.values()].slice(0, bounds.issues)
}

/** Whether a value contains at most `bounds.values_checked` values. */
function isSmall(value: unknown): boolean {
  const open = [value]
  let count = 0
  let next
  while ((next = open.pop()) !== undefined) {
    if (typeof next !== 'object' || next === null) continue
    const members: unknown[] = Array.isArray(next) ? next : Object.values(next)
    count += members.length
    if (count > bounds.values_checked) return false
    for (const member of members) if (typeof member === 'object' && member !== null) open.push(member)
  }
  return true
}

/**
 * The first error of a parsed body that does not depend on its schema (decisions D11, D15): nesting deeper than
 * `bounds.nesting`, a key that sets a prototype, text with U+0000 or a lone surrogate, a number that overflowed. It does
 * not recurse: `JSON.parse` accepts 100,000 levels, and recursive code overflows the stack between 2,000 and 5,000.
 */
export function checkStructure(body: unknown): Issue | undefined {
  const open: { value: unknown; path: string; depth: number }[] = [{ value: body, path: '', depth: 0 }]
  let next
  while ((next = open.pop())) {
    const { value, path, depth } = next
    if (typeof value === 'string' && !isCleanText(value))
      return { field: path || 'body', message: 'must be well-formed Unicode without U+0000', code: 'invalid_format' }
    if (overflowed(value))
      return { field: path || 'body', message: 'is not a number that can be stored', code: 'out_of_range' }
    if (typeof value !== 'object' || value === null) continue
    if (depth >= bounds.nesting)
      return {
        field: 'body',
        message: `must not be nested deeper than ${bounds.nesting} levels`,
        code: 'out_of_range',
        max: bounds.nesting,
      }
    // Building a path for each of half a million numbers would cost too much.
    if (Array.isArray(value) && value.every(isPlain)) continue
    for (const [key, member] of Object.entries(value)) {
      const field = Array.isArray(value) ? `${path}[${key}]` : path ? `${path}.${key}` : key
      if (key === '__proto__' || (key === 'constructor' && isObject(member) && Object.hasOwn(member, 'prototype'))) {
        return { field: cut(field) as string, message: 'is a member name that is not allowed', code: 'invalid_format' }
      }
      if (!isCleanText(key))
        return {
          field: path || 'body',
          message: 'has a member name that is not well-formed Unicode',
          code: 'invalid_format',
        }
      open.push({ value: member, path: field.slice(0, 200), depth: depth + 1 })
    }
  }
  return undefined
}

/** Whether a value is null, a boolean or a finite number, which `checkStructure` always accepts. */
function isPlain(value: unknown): boolean {
  return value === null || typeof value === 'boolean' || (typeof value === 'number' && Number.isFinite(value))
}

/**
 * Checks that a body has one result: an `error`, or an `output`, which may be null. A null `output` beside an `error` is
 * absent.
 * @throws `validation_error`
 */
export function requireResult({ output, error }: { output?: unknown; error?: unknown }): void {
  if (error === undefined ? output !== undefined : output === undefined || output === null) return
  const message = 'is required, unless error is given; give exactly one of them'
  throw invalid({ field: 'output', message, code: 'required' })
}

/** Well-formed Unicode without U+0000 (decision D15). */
export function isCleanText(text: string): boolean {
  return text.isWellFormed() && !text.includes('\u0000')
}

/**
 * Parses a query string that begins with its question mark: empty parameters are absent, repeated ones are issues
 * (decision D16). `names` includes the empty ones.
 */
export function readQuery(search: string): { values: Record<string, string>; names: Set<string>; issues: Issue[] } {
  const values: Record<string, string> = Object.create(null)
  const issues = new Map<string, Issue>()
  const seen = new Set<string>()
  let nth = -1
  for (const [field, value] of new URLSearchParams(search)) {
    nth += 1
    const isClean = isCleanText(value) && (!value.includes('\ufffd') || isUtf8(pieceOf(search, nth)))
    const message = seen.has(field)
      ? 'must not be repeated'
      : isClean
        ? undefined
        : 'must be well-formed Unicode without U+0000'
    if (message) issues.set(field, { field, message, code: 'invalid_format' })
    if (value !== '') values[field] = value
    seen.add(field)
  }
  return { values, names: seen, issues: [...issues.values()] }
}

/** The raw text of the nth parameter, split as URLSearchParams does. */
function pieceOf(search: string, nth: number): string {
  return search
    .slice(1)
    .split('&')
    .filter((piece) => piece !== '')[nth]!
}

/** Whether the percent-encoded bytes of a parameter are UTF-8; URLSearchParams replaces others by U+FFFD. */
function isUtf8(piece: string): boolean {
  try {
    decodeURIComponent(piece.replaceAll(/%(?![0-9a-f]{2})/gi, '%25'))
    return true
  } catch {
    return false
  }
}

/** Converts the text of query parameters to the types of the schema, strictly (decision D16), and validates them. */
export function checkQuery(
  schema: object,
  values: Record<string, string>,
): { value: Record<string, unknown>; issues: Issue[] } {
  const properties = (schema as { properties?: Record<string, { type?: string }> }).properties ?? {}
  const value: Record<string, unknown> = {}
  const unread: Issue[] = []
  for (const [name, { type }] of Object.entries(properties)) {
    const text = values[name]
    if (text === undefined) continue
    if (type === 'integer' && !/^-?\d{1,10}$/.test(text))
      unread.push({ field: name, message: 'must be an integer', code: 'invalid_format', provided: cut(text) })
    else if (type === 'boolean' && text !== 'true' && text !== 'false')
      unread.push({ field: name, message: 'must be true or false', code: 'invalid_format', provided: cut(text) })
    else value[name] = type === 'integer' ? Number(text) : type === 'boolean' ? text === 'true' : text
  }
  const issues = [
    ...unread,
    ...check(schema, value).filter(({ field }) => !unread.some((issue) => issue.field === field)),
  ]
  const order = Object.keys(properties)
  return { value, issues: issues.sort((a, b) => order.indexOf(a.field) - order.indexOf(b.field)) }
}
