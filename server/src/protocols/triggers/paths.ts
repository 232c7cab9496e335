import { triggerPathPattern, type FilterCondition } from '#contract/doors/trigger-sources.ts'
import { isObject } from '#contract/core/merge-patch.ts'

/** A delivery for filters and templates. */
export interface DeliveryView {
  /** Parsed JSON, the fields of a form, the parts of an e-mail, or else the text. */
  body: unknown
  /** Headers by lowercase name. */
  headers: Readonly<Record<string, string>>
  delivery: { id: string; received_at: string }
  trigger: { id: string; name: string; source: string }
}

/** The value at a path such as `body.issue.title`; undefined if there is none. Only own members count. */
export function valueAt(view: DeliveryView, path: string): unknown {
  const [root = '', ...names] = path.split('.')
  if (root === 'headers' && names.length > 0) return ownMember(view.headers, names.join('.').toLowerCase())
  return names.reduce<unknown>(ownMember, ownMember(view, root))
}

function ownMember(of: unknown, name: string): unknown {
  if (typeof of !== 'object' || of === null || !Object.hasOwn(of, name)) return undefined
  // A list has only its elements: `length` was not sent.
  if (Array.isArray(of)) return /^\d+$/.test(name) ? of[Number(name)] : undefined
  return (of as Record<string, unknown>)[name]
}

/** Whether all conditions hold. A path without a value equals nothing and is in no list. */
export function matches(filter: readonly FilterCondition[], view: DeliveryView): boolean {
  return filter.every((condition) => holds(condition, valueAt(view, condition.path)))
}

function holds({ op, value }: FilterCondition, found: unknown): boolean {
  switch (op) {
    case 'eq':
      return isSame(found, value)
    case 'ne':
      return !isSame(found, value)
    case 'in':
      return Array.isArray(value) && value.some((one) => isSame(found, one))
    case 'exists':
      return (found !== undefined) === (value !== false)
    case 'contains':
      if (typeof found === 'string') return typeof value === 'string' && found.includes(value)
      return Array.isArray(found) && found.some((one) => isSame(one, value))
  }
}

/** What is wrong with the value of a condition; undefined if it is valid. */
export function conditionFault({ op, value }: FilterCondition): string | undefined {
  if (op === 'exists') return value === undefined || typeof value === 'boolean' ? undefined : 'must be true or false'
  if (value === undefined) return `is required for ${op}`
  return op === 'in' && !Array.isArray(value) ? 'must be a list for in' : undefined
}

/** Whether two JSON values are equal, independent of the order of members. */
function isSame(a: unknown, b: unknown): boolean {
  if (a === b) return true
  if (Array.isArray(a) && Array.isArray(b)) return a.length === b.length && a.every((one, i) => isSame(one, b[i]))
  if (!isObject(a) || !isObject(b)) return false
  const names = Object.keys(a)
  return (
    names.length === Object.keys(b).length && names.every((name) => Object.hasOwn(b, name) && isSame(a[name], b[name]))
  )
}

/** A placeholder in a template. */
const place = /\{\{([^{}]*)\}\}/g
const path = new RegExp(`^${triggerPathPattern}$`)

/** Replaces each placeholder of a text by what `write` returns for its value. */
export function fill(template: string, view: DeliveryView, write: (value: unknown, path: string) => string): string {
  return template.replaceAll(place, (_, asked: string) => write(valueAt(view, asked.trim()), asked.trim()))
}

/** The path of a template that consists of one placeholder; undefined otherwise. */
export function onlyPlace(template: string): string | undefined {
  return /^\{\{([^{}]*)\}\}$/.exec(template)?.[1]?.trim()
}

/** Whether a template has a placeholder. */
export function hasPlace(template: string): boolean {
  return template.search(place) >= 0
}

/** The first invalid path of a template; undefined if all are valid. */
export function badPlace(template: string): string | undefined {
  for (const [whole, asked = ''] of template.matchAll(place)) if (!path.test(asked.trim())) return whole.slice(0, 50)
  const rest = template.replaceAll(place, '')
  const at = rest.indexOf('{{')
  return at < 0 ? undefined : rest.slice(at, at + 50)
}

/** A value as text: a text unchanged, no value as an empty text, anything else as JSON. */
export function asText(value: unknown): string {
  if (value === undefined || value === null) return ''
  return typeof value === 'string' ? value : JSON.stringify(value)
}
