import { Ajv, type ValidateFunction } from 'ajv'
import { cut, issueOf, meant, overflowed } from '#contract/core/issues.ts'
import { bounds } from '#contract/core/limits.ts'
import { isObject } from '#contract/core/merge-patch.ts'
import type { Issue } from '#contract/core/problems.ts'
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
    // A text that is no moment at all is the format's complaint.
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
 * Validates `value` against a schema of the contract and fills in defaults. Returns the errors, one for a field and
 * `bounds.issues` at most; none when it is valid. A value with more than `bounds.values_checked` parts is reported by
 * its first error only: half a million invalid values must not keep the process busy.
 */
export function check(schema: object, value: unknown): Issue[] {
  const kind = isSmall(value) ? 'every' : 'first'
  let validate = compiled[kind].get(schema)
  if (!validate) compiled[kind].set(schema, (validate = (kind === 'every' ? every : first).compile(schema)))
  if (validate(value)) return []
  const errors = validate.errors ?? []
  // They hold what was sent, which is not needed any more.
  validate.errors = null
  const byField = new Map<string, Issue>()
  // One complaint a field is enough: an empty text breaks its least length and its pattern alike.
  for (const issue of meant(errors).map((error) => issueOf(error)))
    if (!byField.has(issue.field)) byField.set(issue.field, issue)
  return [...byField.values()].slice(0, bounds.issues)
}

/** Whether there are no more than `bounds.values_checked` values in it. */
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
 * What is wrong with a parsed body whatever its fields mean (decisions D11, D15): nesting deeper than 32, a key that
 * reaches for a prototype, text with U+0000 or a lone surrogate, a number that overflowed. Walks without recursion:
 * `JSON.parse` accepts 100,000 levels, and whatever recurses dies between 2,000 and 5,000.
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
    // Of half a million numbers none is worth a path.
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

/** A value with nothing in it that could be wrong. */
function isPlain(value: unknown): boolean {
  return value === null || typeof value === 'boolean' || (typeof value === 'number' && Number.isFinite(value))
}

/** Well-formed Unicode without U+0000 (decision D15). */
export function isCleanText(text: string): boolean {
  return text.isWellFormed() && !text.includes('\u0000')
}

/**
 * The query string with its question mark, read once: empty parameters are absent, repeated ones are faults (decision D16). `names` are
 * all that it has.
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

/** A piece of a query, by its place as URLSearchParams divides it. */
function pieceOf(search: string, nth: number): string {
  return search
    .slice(1)
    .split('&')
    .filter((piece) => piece !== '')[nth]!
}

/** Whether the bytes that a piece of a query encodes are UTF-8: URLSearchParams puts U+FFFD in the place of others. */
function isUtf8(piece: string): boolean {
  try {
    decodeURIComponent(piece.replaceAll(/%(?![0-9a-f]{2})/gi, '%25'))
    return true
  } catch {
    return false
  }
}

/** Query parameters have text only: turns it into the types that the schema names, without guessing (decision D16). */
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
