import { triggerPathPattern, type FilterCondition } from '#contract/doors/trigger-sources.ts'
import { isObject } from '#contract/core/merge-patch.ts'

/** A delivery as filters and templates see it. */
export interface DeliveryView {
  /** Parsed JSON, the fields of a form, the parts of an e-mail, or else the text. */
  body: unknown
  /** By names in lower case. */
  headers: Readonly<Record<string, string>>
  delivery: { id: string; received_at: string }
  trigger: { id: string; name: string; source: string }
}

/** What a delivery has at a place such as `body.issue.title`; undefined where there is nothing. Only own members count. */
export function valueAt(view: DeliveryView, path: string): unknown {
  const [root = '', ...names] = path.split('.')
  if (root === 'headers' && names.length > 0) return ownMember(view.headers, names.join('.').toLowerCase())
  return names.reduce<unknown>(ownMember, ownMember(view, root))
}

function ownMember(of: unknown, name: string): unknown {
  if (typeof of !== 'object' || of === null || !Object.hasOwn(of, name)) return undefined
  // Of a list only its elements: `length` is no member that was sent.
  if (Array.isArray(of)) return /^\d+$/.test(name) ? of[Number(name)] : undefined
  return (of as Record<string, unknown>)[name]
}

/** Whether all conditions hold. A place that a delivery does not have equals nothing, and is in nothing. */
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

/** What is wrong with the value that a condition compares with; undefined where nothing is. */
export function conditionFault({ op, value }: FilterCondition): string | undefined {
  if (op === 'exists') return value === undefined || typeof value === 'boolean' ? undefined : 'must be true or false'
  if (value === undefined) return `is required for ${op}`
  return op === 'in' && !Array.isArray(value) ? 'must be a list for in' : undefined
}

/** Equal as JSON values, whatever the order of members. */
function isSame(a: unknown, b: unknown): boolean {
  if (a === b) return true
  if (Array.isArray(a) && Array.isArray(b)) return a.length === b.length && a.every((one, i) => isSame(one, b[i]))
  if (!isObject(a) || !isObject(b)) return false
  const names = Object.keys(a)
  return (
    names.length === Object.keys(b).length && names.every((name) => Object.hasOwn(b, name) && isSame(a[name], b[name]))
  )
}

/** A place in a template. */
const place = /\{\{([^{}]*)\}\}/g
const path = new RegExp(`^${triggerPathPattern}$`)

/** A text with each of its places replaced by what `write` makes of the value there. */
export function fill(template: string, view: DeliveryView, write: (value: unknown, path: string) => string): string {
  return template.replaceAll(place, (_, asked: string) => write(valueAt(view, asked.trim()), asked.trim()))
}

/** The path of a template that is one place and nothing else. */
export function onlyPlace(template: string): string | undefined {
  return /^\{\{([^{}]*)\}\}$/.exec(template)?.[1]?.trim()
}

/** Whether a template has a place at all. */
export function hasPlace(template: string): boolean {
  return template.search(place) >= 0
}

/** What in a template names no place in a delivery; undefined where all do. */
export function badPlace(template: string): string | undefined {
  for (const [whole, asked = ''] of template.matchAll(place)) if (!path.test(asked.trim())) return whole.slice(0, 50)
  const rest = template.replaceAll(place, '')
  const at = rest.indexOf('{{')
  return at < 0 ? undefined : rest.slice(at, at + 50)
}

/** A value as text: a text as it is, nothing as nothing, all else as JSON. */
export function asText(value: unknown): string {
  if (value === undefined || value === null) return ''
  return typeof value === 'string' ? value : JSON.stringify(value)
}
