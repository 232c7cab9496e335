import { Problem } from '#contract/core/problems.ts'

/** The entity tag of a revision (decision D99). */
export function etag(revision: number): string {
  return `"${revision}"`
}

/** Whether `If-None-Match` names this tag, by weak comparison (RFC 9110 §13.1.2); if so, the response is 304. */
export function isKnown(header: string | undefined, tag: string): boolean {
  if (header === undefined) return false
  return header.trim() === '*' || header.split(',').some((one) => withoutWeakness(one.trim()) === withoutWeakness(tag))
}

function withoutWeakness(tag: string): string {
  return tag.replace(/^W\//, '')
}

/** The revision of a row whose `updated_at` advances by at least a millisecond with every change. */
export function timeRevision({ created_at, updated_at }: { created_at: string; updated_at?: string | null }): number {
  return Date.parse(updated_at ?? created_at)
}

/**
 * Checks `If-Match` against the current revision; without the header every revision matches.
 * @throws `precondition_failed`
 */
export function requireMatch(header: string | undefined, revision: number): void {
  if (header === undefined || header.trim() === '*') return
  const tags = header.split(',').map((tag) => withoutWeakness(tag.trim()))
  if (tags.includes(etag(revision))) return
  throw new Problem('precondition_failed', {
    conflicting_field: 'If-Match',
    conflicting_value: header.slice(0, 100),
    current: etag(revision),
  })
}
