import { invalidQuery, type Issue } from '#contract/core/problems.ts'
import { isId } from '../../platform/ids.ts'

/**
 * An opaque cursor to the entry after the one with this key, by which the list is sorted (keyset paging). Entries that
 * are added or removed before it do not shift the next page. Its format may change with the sort key.
 */
export function cursorOf(key: string | number | readonly (string | number)[]): string {
  return Buffer.from(JSON.stringify(key)).toString('base64url')
}

/**
 * The key in a cursor; undefined without a cursor.
 * @throws `invalid_query` if the cursor is not one of such a list
 */
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

/** Checks the key of a list that is sorted by identifiers of one kind. */
export const isIdKey =
  (kind: Parameters<typeof isId>[0]) =>
  (key: unknown): key is string =>
    typeof key === 'string' && isId(kind, key)

/** The issue of a query that has both a cursor and an offset or page. */
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
 * The entries of a page and the cursor of the next page, null for the last page. `read` must have been read with a limit
 * of `limit` + 1: one more entry than fits shows that there is a next page.
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
