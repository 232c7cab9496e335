import { parseTimestamp } from '#contract/core/timestamps.ts'

/** The `pagination` of a list with offsets (spec 2.10, decision D51). */
export function offsetPagination(total: number, limit: number, offset: number, returned: number) {
  return { total, limit, offset, has_more: offset + returned < total }
}

/** The `pagination` of a list with pages (spec 2.10, decision D32). */
export function pagePagination(total: number, page: number, limit: number) {
  const pages = Math.ceil(total / limit)
  return { page, limit, total, pages, has_next: page < pages, has_prev: page > 1 && total > 0 }
}

/** The `pagination` of a list with offsets that also has cursors: the cursor decides `has_more`. */
export function offsetCursorPagination(total: number, limit: number, offset: number, next_cursor: string | null) {
  return { total, limit, offset, has_more: next_cursor !== null, next_cursor }
}

/** The `pagination` of a list with pages that also has cursors: the cursor decides `has_next`. */
export function pageCursorPagination(total: number, page: number, limit: number, next_cursor: string | null) {
  return { ...pagePagination(total, page, limit), has_next: next_cursor !== null, next_cursor }
}

/** A valid timestamp in the service's format. */
export function timestamp(text: string | undefined): string | undefined {
  return text === undefined ? undefined : parseTimestamp(text)
}
