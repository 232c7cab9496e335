import { parseTimestamp } from '#contract/core/timestamps.ts'

/** Where a list of family A stands (spec 2.10, decision D51). */
export function offsetPagination(total: number, limit: number, offset: number, returned: number) {
  return { total, limit, offset, has_more: offset + returned < total }
}

/** Where a list of family B stands (spec 2.10, decision D32). */
export function pagePagination(total: number, page: number, limit: number) {
  const pages = Math.ceil(total / limit)
  return { page, limit, total, pages, has_next: page < pages, has_prev: page > 1 && total > 0 }
}

/** The same of lists that go on by a cursor as well: the cursor tells whether there is more, wherever the page began. */
export function offsetCursorPagination(total: number, limit: number, offset: number, next_cursor: string | null) {
  return { total, limit, offset, has_more: next_cursor !== null, next_cursor }
}

export function pageCursorPagination(total: number, page: number, limit: number, next_cursor: string | null) {
  return { ...pagePagination(total, page, limit), has_next: next_cursor !== null, next_cursor }
}

/** A moment that validation has accepted, in the service's form. */
export function timestamp(text: string | undefined): string | undefined {
  return text === undefined ? undefined : parseTimestamp(text)
}
