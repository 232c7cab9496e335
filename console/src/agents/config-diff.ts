import { isObject } from '#contract/core/merge-patch.ts'

/** One difference between two configurations, by the path of what differs. */
export interface Difference {
  path: string
  before: unknown
  after: unknown
}

/** What differs between two values, down to what is no object any more; lists are compared as one. */
export function differences(before: unknown, after: unknown, path = ''): Difference[] {
  if (isObject(before) && isObject(after)) {
    const names = [...new Set([...Object.keys(before), ...Object.keys(after)])].toSorted()
    return names.flatMap((name) => differences(before[name], after[name], path === '' ? name : `${path}.${name}`))
  }
  return JSON.stringify(before) === JSON.stringify(after) ? [] : [{ path, before, after }]
}

/**
 * The JSON Merge Patch (RFC 7396) that makes `after` of `before`: what is gone becomes null, lists are given whole. Empty
 * where nothing differs.
 */
export function patchBetween(before: Record<string, unknown>, after: Record<string, unknown>): Record<string, unknown> {
  const patch: Record<string, unknown> = {}
  for (const name of new Set([...Object.keys(before), ...Object.keys(after)])) {
    const [old, now] = [before[name], after[name]]
    if (now === undefined) patch[name] = null
    else if (isObject(old) && isObject(now)) {
      const inner = patchBetween(old, now)
      if (Object.keys(inner).length > 0) patch[name] = inner
    } else if (JSON.stringify(old) !== JSON.stringify(now)) patch[name] = now
  }
  return patch
}
