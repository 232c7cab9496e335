import { invalidQuery, type Issue } from '#contract/core/problems.ts'
import { isId } from '../../platform/ids.ts'

/**
 * Where a list goes on: after the entry with this key, by which the list is sorted. What is added or removed before that
 * entry moves nothing. Clients are promised no form of it, so that a list may be sorted by another key one day.
 */
export function cursorOf(key: string | number | readonly (string | number)[]): string {
  return Buffer.from(JSON.stringify(key)).toString('base64url')
}

/** The key in a cursor; undefined where there is none. Throws 400 for a cursor that no such list gave. */
export function keyOf<Key>(cursor: string | undefined, isKey: (key: unknown) => key is Key): Key | undefined {
  if (cursor === undefined) return undefined
  const key = decoded(cursor)
  if (isKey(key)) return key
  throw invalidQuery({
    field: 'cursor',
    message: 'must be the next_cursor of an earlier page of this list',
    code: 'invalid_format',
    provided: cursor,
  })
}

/** Whether a key is an identifier of a kind, as of lists that are sorted by it. */
export const isIdKey =
  (kind: Parameters<typeof isId>[0]) =>
  (key: unknown): key is string =>
    typeof key === 'string' && isId(kind, key)

/** What is wrong with a query that has a cursor beside the offset or page that it takes the place of. */
export function cursorIssues(query: Readonly<Record<string, string>>): Issue[] {
  const other = ['offset', 'page'].find((name) => Object.hasOwn(query, name))
  if (other === undefined || !Object.hasOwn(query, 'cursor')) return []
  return [{ field: 'cursor', message: `must not be given together with ${other}`, code: 'invalid_format' }]
}

function decoded(cursor: string): unknown {
  try {
    return JSON.parse(Buffer.from(cursor, 'base64url').toString())
  } catch {
    return undefined
  }
}

/**
 * The entries of a page out of those that were read, which are one more than its limit where it is not the last, and the
 * cursor of the next page; null after the last.
 */
export function cutPage<Entry>(
  read: readonly Entry[],
  limit: number,
  key: (entry: Entry) => Parameters<typeof cursorOf>[0],
): { entries: Entry[]; next_cursor: string | null } {
  const entries = read.slice(0, limit)
  const last = entries.at(-1)
  return { entries, next_cursor: read.length > limit && last !== undefined ? cursorOf(key(last)) : null }
}
