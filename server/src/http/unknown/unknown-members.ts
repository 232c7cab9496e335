import type { TSchema } from 'typebox'
import { cut } from '#contract/core/issues.ts'
import { bounds } from '#contract/core/limits.ts'
import type { Operation } from '#contract/core/operation.ts'
import type { Issue } from '#contract/core/problems.ts'
import { operations } from '#contract/operations.ts'
import { nearest } from '../../platform/nearest.ts'
import { isProtocol } from '../error-formats.ts'

/** Maximum typing errors for an unknown member of an open object to count as a misspelled known one. */
const openErrorsMax = 2

/** The parts of a JSON Schema that declare members. */
interface Form {
  type?: string
  enum?: readonly unknown[]
  properties?: Record<string, Form>
  additionalProperties?: boolean | Form
  items?: Form
  anyOf?: readonly Form[]
}

/** Members that an object does not declare. */
export interface UnknownMembers {
  /** Those that are refused. */
  issues: Issue[]
  /** Paths of those that are stored in an open object. */
  kept: string[]
}

/** Whether an operation refuses unknown members; OAuth, pages and protocols have separate rules (decision D14). */
export function isStrict(operation: Operation): boolean {
  const { error_format, tolerant } = operation
  return tolerant !== true && error_format !== 'oauth' && error_format !== 'page' && !isProtocol(error_format)
}

/** Issues of unknown members of a body; read-only members of the resource are ignored, not unknown (decision D14). */
export function unknownInBody(operation: Operation, body: unknown): Issue[] {
  if (!operation.body || !isStrict(operation)) return []
  return unknownMembers(operation.body, body, answersOf(operation)).issues
}

/** Issues of unknown query parameters. */
export function unknownInQuery(operation: Operation, names: Iterable<string>): Issue[] {
  if (!isStrict(operation)) return []
  const known = Object.keys(operation.query?.properties ?? {})
  const given = new Set(names)
  const missing = known.filter((name) => !given.has(name))
  return [...given]
    .filter((name) => !known.includes(name))
    .slice(0, bounds.issues)
    .map((name) => unknown('query parameter', name, name, nearest(name, missing) ?? nearest(name, known)))
}

/**
 * Members of `value` that its schema does not declare. An object is closed unless its schema has `additionalProperties`.
 * If an open object also declares members, an unknown member is kept, unless it is within two typing errors of a declared
 * name that is absent. `answers` are the schemas of responses with the resource: members that only they declare are
 * read-only and ignored. At most `bounds.issues` are collected of each kind, which bounds the work.
 */
export function unknownMembers(schema: TSchema, value: unknown, answers: readonly TSchema[] = []): UnknownMembers {
  const found: UnknownMembers = { issues: [], kept: [] }
  collect(found, [schema], answers, value, '')
  return found
}

function collect(
  found: UnknownMembers,
  schemas: readonly Form[],
  answers: readonly Form[],
  value: unknown,
  path: string,
): void {
  if (found.issues.length >= bounds.issues || typeof value !== 'object' || value === null) return
  const forms = formsOf(schemas, value)
  // A value of the wrong type is reported by the validator; without a schema, anything is valid.
  if (forms.length === 0) return
  // This runs on every request and most values have nothing unknown, so the following is only computed if needed.
  const answered = once(() => formsOf(answers, value))
  if (Array.isArray(value)) {
    const items = forms.flatMap((form) => form.items ?? [])
    if (items.length === 0) return
    const itemsAnswered = answered().flatMap((form) => form.items ?? [])
    for (const [i, item] of value.entries()) collect(found, items, itemsAnswered, item, `${path}[${i}]`)
    return
  }
  const declared = forms.filter(({ properties }) => properties !== undefined)
  const others = once(() => forms.flatMap(({ additionalProperties: more }) => more ?? []))
  const known = once(() => [...new Set(declared.flatMap(({ properties }) => Object.keys(properties!)))])
  const missing = once(() => known().filter((name) => !Object.hasOwn(value, name)))
  for (const name of Object.keys(value)) {
    if (found.issues.length >= bounds.issues) return
    const member = (value as Record<string, unknown>)[name]
    const inner = membersOf(declared, name)
    const isPlain = typeof member !== 'object' || member === null
    if (inner.length > 0 && isPlain) continue
    const at = path ? `${path}.${name}` : name
    const readable = membersOf(answered(), name)
    if (inner.length > 0) {
      collect(found, inner, readable, member, at)
      continue
    }
    if (readable.length > 0) continue
    const isOpen = others().some((more) => more !== false) || declared.length < forms.length
    if (!isOpen) found.issues.push(unknown('member', name, at, nearest(name, missing()) ?? nearest(name, known())))
    else if (known().length > 0) {
      if (found.kept.length >= bounds.issues) continue
      // Null removes a misspelled member that was stored earlier.
      const meant = member === null ? undefined : nearest(name, missing(), openErrorsMax)
      if (meant) found.issues.push(unknown('member', name, at, meant))
      else if (member !== null) found.kept.push(cut(at) as string)
    } else {
      const maps = others().filter((more): more is Form => typeof more === 'object')
      collect(found, maps, [], member, at)
    }
  }
}

function once<T>(make: () => T): () => T {
  let made: { value: T } | undefined
  return () => (made ??= { value: make() }).value
}

const none: readonly Form[] = []

function membersOf(forms: readonly Form[], name: string): readonly Form[] {
  // The usual case, for each member of each body: a single form.
  if (forms.length <= 1) {
    const member = forms[0]?.properties
    return member && Object.hasOwn(member, name) ? [member[name]!] : none
  }
  return forms.flatMap(({ properties }) => (properties && Object.hasOwn(properties, name) ? properties[name]! : []))
}

/** The schemas that `value` may be meant for: of its type, and for objects those whose `enum` members allow its values. */
function formsOf(schemas: readonly Form[], value: object): readonly Form[] {
  const [first] = schemas
  if (schemas.length === 1 && first!.anyOf === undefined)
    return first!.type === (Array.isArray(value) ? 'array' : 'object') ? schemas : none
  const all = schemas.flatMap(alternatives)
  if (Array.isArray(value)) return all.filter(({ type }) => type === 'array')
  const objects = all.filter(({ type }) => type === 'object')
  if (objects.length <= 1) return objects
  const meant = objects.filter((form) =>
    fixedMembers(form).every(([name, allowed]) => allowed.includes((value as Record<string, unknown>)[name])),
  )
  return meant.length > 0 ? meant : objects
}

const fixed = new WeakMap<Form, [string, readonly unknown[]][]>()

/** Names and allowed values of the members with an `enum`; cached, because every request needs them. */
function fixedMembers(form: Form): [string, readonly unknown[]][] {
  let known = fixed.get(form)
  if (!known) {
    known = Object.entries(form.properties ?? {}).flatMap(([name, member]) =>
      member.enum ? [[name, member.enum]] : [],
    )
    fixed.set(form, known)
  }
  return known
}

function alternatives(schema: Form): Form[] {
  return schema.anyOf ? schema.anyOf.flatMap(alternatives) : [schema]
}

function unknown(what: 'member' | 'query parameter', name: string, path: string, meant: string | undefined): Issue {
  const message = `unknown ${what} \`${cut(name)}\`${meant === undefined ? '' : `; did you mean \`${meant}\`?`}`
  return { field: cut(path) as string, message, code: 'unknown_field' }
}

const answers = new WeakMap<Operation, TSchema[]>()

/**
 * Schemas of responses with the resource of an operation: its own, those of a GET of its path or of an item below it, and
 * that of the POST that creates it, whose response may have a secret.
 */
function answersOf(operation: Operation): TSchema[] {
  let known = answers.get(operation)
  if (!known) {
    const taken = Object.keys(operation.body?.properties ?? {})
    const above = operation.path.replace(/\/\{\w+\}$/, '')
    const reads = operations.filter(({ method, path }) =>
      method === 'GET'
        ? path.startsWith(operation.path) && /^(?:\/\{\w+\})?$/.test(path.slice(operation.path.length))
        : method === 'POST' && path === above,
    )
    known = [operation, ...(reads as readonly Operation[])]
      .flatMap(({ responses }) => responses.flatMap(({ schema }) => schema ?? []))
      // A confirmation or a list shares no member with the resource.
      .filter((schema) => taken.some((name) => Object.hasOwn((schema as Form).properties ?? {}, name)))
    answers.set(operation, known)
  }
  return known
}
