import { isDeepStrictEqual } from 'node:util'
import { isObject } from '#contract/core/merge-patch.ts'
import { secretText } from '../../platform/log.ts'

/** Maximum size as JSON of each of `before`, `after` and `detail`. */
export const auditPartMax_bytes = 16 * 1024
/** The replacement of a secret. */
export const redacted = '[redacted]'

type Members = Record<string, unknown>

/** Members that change with every write, or without one, and say nothing about the action. */
const unremarkable = new Set(['updated_at', 'revision', 'last_used', 'last_ip', 'last_activity'])

/**
 * The members that differ between two states of a resource, including members of nested objects; a list is one value.
 * With only one state, all its members. Undefined if both are given and equal.
 */
export function changes(
  before: object | undefined,
  after: object | undefined,
): { before: Members | undefined; after: Members | undefined } | undefined {
  if (!before || !after) return { before: before && { ...before }, after: after && { ...after } }
  const difference = compare({ ...before }, { ...after })
  return Object.keys(difference.before).length + Object.keys(difference.after).length > 0 ? difference : undefined
}

function compare(before: Members, after: Members): { before: Members; after: Members } {
  const difference = { before: {} as Members, after: {} as Members }
  for (const name of new Set([...Object.keys(before), ...Object.keys(after)])) {
    const [was, is] = [before[name], after[name]]
    if (unremarkable.has(name) || isDeepStrictEqual(was, is)) continue
    const inside = isObject(was) && isObject(is) ? compare(was, is) : { before: was, after: is }
    if (was !== undefined) difference.before[name] = inside.before
    if (is !== undefined) difference.after[name] = inside.after
  }
  return difference
}

/** Names of members whose value is a secret, at any depth. */
const secretNames = new Set([
  'access_token',
  'authorization',
  'client_secret',
  'cookie',
  'current_password',
  'hash',
  'key',
  'new_password',
  'password',
  'password_hash',
  'refresh_token',
  'secret',
  'secret_hash',
  'token',
  'token_hash',
])
/** Names of members whose own members are secrets. */
const secretMaps = new Set(['environment', 'environment_variables', 'headers'])

/** The value without secrets, found by the name of their member or by their form. */
export function withoutSecrets(value: unknown): unknown {
  if (typeof value === 'string') return value.replaceAll(secretText, redacted)
  if (Array.isArray(value)) return value.map(withoutSecrets)
  if (!isObject(value)) return value
  return mapMembers(value, (name, member) => {
    if (secretNames.has(name.toLowerCase())) return member === null ? null : redacted
    if (secretMaps.has(name) && isObject(member)) return mapMembers(member, () => redacted)
    return withoutSecrets(member)
  })
}

function mapMembers(members: Members, change: (name: string, value: unknown) => unknown): Members {
  return Object.fromEntries(
    Object.entries(members).map(([name, value]) => [name.replaceAll(secretText, redacted), change(name, value)]),
  )
}

/** Shrinks a value to at most `bytesMax` as JSON: the largest texts are cut, then the largest members left out. */
export function bounded(value: unknown, bytesMax: number = auditPartMax_bytes): unknown {
  const size = sizeOf(value)
  if (size <= bytesMax) return value
  const shrunk = shrink(value, bytesMax)
  return sizeOf(shrunk) <= bytesMax ? shrunk : { left_out_bytes: size }
}

/** A value that must be smaller than this is replaced by a mark. */
const worthShrinking_bytes = 200

function shrink(value: unknown, bytesMax: number): unknown {
  const size = sizeOf(value)
  if (size <= bytesMax) return value
  if (bytesMax >= worthShrinking_bytes) {
    if (typeof value === 'string') return cut(value, bytesMax / size)
    if (isObject(value)) return shrinkMembers(value, size - bytesMax)
  }
  return `[left out: ${size} bytes]`
}

/** Shrinks the largest members first. */
function shrinkMembers(members: Members, excess_bytes: number): Members {
  const shrunk = { ...members }
  let excess = excess_bytes
  const bySize = Object.entries(members)
    .map(([name, value]) => ({ name, value, size: sizeOf(value) }))
    .toSorted((a, b) => b.size - a.size)
  for (const { name, value, size } of bySize) {
    if (excess <= 0) break
    shrunk[name] = shrink(value, size - excess)
    excess -= size - sizeOf(shrunk[name])
  }
  return shrunk
}

/** The beginning of a text, somewhat shorter than the share that would fit. */
function cut(text: string, share: number): string {
  const stored = text.slice(0, Math.max(0, Math.floor(text.length * share) - 60)).toWellFormed()
  return `${stored}… [cut: ${text.length} characters]`
}

function sizeOf(value: unknown): number {
  return Buffer.byteLength(JSON.stringify(value) ?? '')
}
