import { Problem } from '#contract/core/problems.ts'

/** The tag of a revision (decision D99). */
export function etag(revision: number): string {
  return `"${revision}"`
}

/** Throws 412 where `If-Match` names another revision than the current one; without the header nothing is checked. */
export function requireMatch(header: string | undefined, revision: number): void {
  if (header === undefined || header.trim() === '*') return
  const tags = header.split(',').map((tag) => tag.trim().replace(/^W\//, ''))
  if (tags.includes(etag(revision))) return
  throw new Problem('precondition_failed', {
    conflicting_field: 'If-Match',
    conflicting_value: header.slice(0, 100),
    current: etag(revision),
  })
}
