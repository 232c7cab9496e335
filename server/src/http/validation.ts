import { Ajv, type ErrorObject, type ValidateFunction } from 'ajv'
import { bounds } from '#contract/limits.ts'
import { isObject } from '#contract/merge-patch.ts'
import type { Issue } from '#contract/problems.ts'
import { parseTimestamp } from '#contract/timestamps.ts'

const every = makeAjv(true)
/** Ends at the first fault, for what is too large to be told all that is wrong with it. */
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
  for (const keyword of ['x-secret', 'x-name']) ajv.addKeyword({ keyword })
  return ajv
}

function isHttpUrl(text: string): boolean {
  const url = URL.parse(text)
  return url !== null && (url.protocol === 'http:' || url.protocol === 'https:')
}

const compiled = { every: new WeakMap<object, ValidateFunction>(), first: new WeakMap<object, ValidateFunction>() }

/** Of a value that may have one of several forms: what is wrong inside of the form that it has, not that it has no other. */
function meant(errors: readonly ErrorObject[]): ErrorObject[] {
  const parents = new Set(errors.flatMap(({ instancePath }) => ancestors(instancePath)))
  return errors.filter(
    ({ keyword, schemaPath, instancePath }) =>
      !((keyword === 'type' || keyword === 'anyOf') && schemaPath.includes('/anyOf') && parents.has(instancePath)),
  )
}

/** `/a/b/c` → '', `/a`, `/a/b`. */
function ancestors(pointer: string): string[] {
  const parts = pointer.split('/')
  return parts.slice(1).map((_, i) => parts.slice(0, i + 1).join('/'))
}

/**
 * Checks `value` against a schema of the contract; fills in defaults. Returns the faults, one a field and `bounds.issues` at
 * most, none when it is valid. What has more than `bounds.values_checked` values is told its first fault alone: somebody who
 * sends half a million wrong ones is not to keep the process busy with them.
 */
export function check(schema: object, value: unknown): Issue[] {
  const kind = isSmall(value) ? 'every' : 'first'
  let validate = compiled[kind].get(schema)
  if (!validate) compiled[kind].set(schema, (validate = (kind === 'every' ? every : first).compile(schema)))
  if (validate(value)) return []
  const errors = validate.errors ?? []
  // They hold what was sent, which nobody needs any more.
  validate.errors = null
  const byField = new Map<string, Issue>()
  // One complaint a field is enough: an empty text breaks its least length and its pattern alike.
  for (const issue of meant(errors).map(toIssue)) if (!byField.has(issue.field)) byField.set(issue.field, issue)
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

function toIssue(error: ErrorObject): Issue {
  const path = fieldPath(error.instancePath)
  const secret = isObject(error.parentSchema) && error.parentSchema['x-secret'] === true
  const provided =
    secret || error.data === undefined || isObject(error.data) || Array.isArray(error.data)
      ? {}
      : { provided: cut(error.data) }
  const issue = (code: Issue['code'], message: string, more: Partial<Issue> = {}): Issue => ({
    field: path || 'body',
    message,
    code,
    ...more,
    ...provided,
  })
  const limit = Number(error.params.limit)

  switch (error.keyword) {
    case 'required': {
      const field = path ? `${path}.${error.params.missingProperty}` : String(error.params.missingProperty)
      return { field, message: `${field} is required`, code: 'required' }
    }
    case 'type':
      if (error.data === null)
        return { field: path || 'body', message: `${path || 'body'} is required`, code: 'required' }
      return overflowed(error.data)
        ? issue('out_of_range', 'is not a number that can be kept')
        : issue('invalid_format', `must be ${article(String(error.params.type))}`)
    case 'minLength':
      return error.data === ''
        ? { field: path, message: `${path} must not be empty`, code: 'required' }
        : issue('too_short', `must have at least ${limit} characters`, { min: limit })
    case 'maxLength':
      return issue('too_long', `must have at most ${limit} characters`, { max: limit })
    case 'minItems':
      return error.params.limit === 1
        ? { field: path, message: `${path} must not be empty`, code: 'required' }
        : issue('too_short', `must have at least ${limit} items`, { min: limit })
    case 'maxItems':
      return issue('too_long', `must have at most ${limit} items`, { max: limit })
    case 'maxProperties':
      return issue('too_long', `must have at most ${limit} members`, { max: limit })
    case 'x-max-json-bytes':
      return issue('too_long', `must have at most ${error.schema} bytes as JSON`, { max: Number(error.schema) })
    case 'minimum':
    case 'maximum':
    case 'exclusiveMinimum':
    case 'exclusiveMaximum':
      return issue('out_of_range', rangeMessage(error.parentSchema), range(error.parentSchema))
    case 'x-future':
      return issue('out_of_range', 'must be in the future')
    case 'enum':
      return issue('invalid_choice', `must be one of ${choices(error.params.allowedValues as unknown[])}`)
    case 'propertyNames': {
      const key = String(error.params.propertyName)
      return {
        field: path,
        message: `has a member name that is not allowed: ${cut(key)}`,
        code: 'invalid_format',
        provided: cut(key),
      }
    }
    default:
      return issue('invalid_format', describeFormat(error))
  }
}

/** Null is how a member is removed, not one of the values that it may have. */
function choices(allowed: unknown[]): string {
  return allowed
    .filter((value) => value !== null)
    .map(String)
    .join(', ')
}

function describeFormat(error: ErrorObject): string {
  const description = isObject(error.parentSchema) ? error.parentSchema.description : undefined
  if (error.keyword === 'format' && (error.params.format === 'timestamp' || error.params.format === 'date-time')) {
    return 'must be an ISO 8601 date and time'
  }
  if (error.keyword === 'format' && error.params.format === 'http-url') return 'must be an http or https URL'
  if (error.keyword === 'format') return `must be a valid ${error.params.format}`
  return typeof description === 'string'
    ? `is not of the right form: ${description.replace(/\.$/, '')}`
    : 'is not of the right form'
}

function range(schema: unknown): Partial<Issue> {
  if (!isObject(schema)) return {}
  return {
    ...(typeof schema.minimum === 'number' ? { min: schema.minimum } : {}),
    ...(typeof schema.maximum === 'number' ? { max: schema.maximum } : {}),
  }
}

function rangeMessage(schema: unknown): string {
  const { min, max } = range(schema)
  if (min !== undefined && max !== undefined) return `must be between ${min} and ${max}`
  return min === undefined ? `must be at most ${max}` : `must be at least ${min}`
}

/** `1e400` is read as Infinity: JSON, but no number that can be kept (decision D11). */
function overflowed(value: unknown): boolean {
  return typeof value === 'number' && !Number.isFinite(value)
}

function article(type: string): string {
  return /^[aeiou]/.test(type) ? `an ${type}` : `a ${type}`
}

/** What was sent, short enough for an answer (decision D26). */
export function cut(value: unknown): unknown {
  const max = 100
  return typeof value === 'string' && value.length > max ? value.slice(0, max).toWellFormed() : value
}

/** `/scopes/1` → `scopes[1]`, `/config/model` → `config.model`. */
function fieldPath(pointer: string): string {
  return pointer
    .split('/')
    .slice(1)
    .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'))
    .reduce((path, part) => (/^\d+$/.test(part) && path ? `${path}[${part}]` : path ? `${path}.${part}` : part), '')
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
      return { field: path || 'body', message: 'is not a number that can be kept', code: 'out_of_range' }
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
 * The query string with its question mark, read once: unknown parameters are ignored, empty ones are absent, repeated
 * ones are faults (decision D16).
 */
export function readQuery(search: string): { values: Record<string, string>; issues: Issue[] } {
  const values: Record<string, string> = Object.create(null)
  const issues = new Map<string, Issue>()
  const seen = new Set<string>()
  for (const [field, value] of new URLSearchParams(search)) {
    const message = seen.has(field)
      ? 'must not be repeated'
      : isCleanText(value)
        ? undefined
        : 'must be well-formed Unicode without U+0000'
    if (message) issues.set(field, { field, message, code: 'invalid_format' })
    if (value !== '') values[field] = value
    seen.add(field)
  }
  return { values, issues: [...issues.values()] }
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
