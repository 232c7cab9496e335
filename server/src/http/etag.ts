import { Problem } from '#contract/core/problems.ts'

/** The tag of a revision (decision D99). */
export function etag(revision: number): string {
  return `"${revision}"`
}

/** Whether `If-None-Match` names this tag, compared weakly (RFC 9110, 13.1.2): the answer is 304 then. */
export function isKnown(header: string | undefined, tag: string): boolean {
  if (header === undefined) return false
  return header.trim() === '*' || header.split(',').some((one) => withoutWeakness(one.trim()) === withoutWeakness(tag))
}

function withoutWeakness(tag: string): string {
  return tag.replace(/^W\//, '')
}

/** The revision of a row whose `updated_at` advances by a millisecond at least with every change. */
export function timeRevision({ created_at, updated_at }: { created_at: string; updated_at?: string | null }): number {
  return Date.parse(updated_at ?? created_at)
}

/** Throws 412 where `If-Match` names another revision than the current one; without the header nothing is checked. */
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
