import { plural } from '../../format.ts'
/** Members of one value that are shown before the user asks for more. */
export const shownMembers = 100
/** Rows that a value opens with. */
const rowsAtFirst = 60

export type Container = Record<string, unknown> | unknown[]

export function isContainer(value: unknown): value is Container {
  return typeof value === 'object' && value !== null
}

/** The place of a member, as a JSON Pointer. */
export function pointerTo(pointer: string, name: string | number): string {
  return `${pointer}/${String(name).replaceAll('~', '~0').replaceAll('/', '~1')}`
}

export function isEmpty(value: Container): boolean {
  if (Array.isArray(value)) return value.length === 0
  for (const _ in value) return false
  return true
}

/** How many members a value has, in words. */
export function sizeOf(value: Container): string {
  return Array.isArray(value) ? plural(value.length, 'item') : plural(Object.keys(value).length, 'member')
}

/** Which values stand open when a tree is first seen, by JSON Pointer: the outer ones, as long as little is shown. */
export function openAtFirst(value: unknown): ReadonlySet<string> {
  const open = new Set<string>()
  const waiting: (readonly [pointer: string, Container])[] = isContainer(value) ? [['', value]] : []
  let rows = 0
  // Grows while it is read: what is nearer to the root comes first.
  for (const [pointer, container] of waiting) {
    const names = Object.keys(container).slice(0, shownMembers)
    if (pointer !== '' && (names.length === 0 || rows + names.length > rowsAtFirst)) continue
    rows += names.length
    open.add(pointer)
    for (const name of names) {
      const member = (container as Record<string, unknown>)[name]
      if (isContainer(member)) waiting.push([pointerTo(pointer, name), member])
    }
  }
  return open
}
