/** Whether a value is a JSON object: neither null nor an array. */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/**
 * JSON Merge Patch (RFC 7396): given members replace, absent members stay, null removes, arrays are replaced whole.
 * Applied to `{}` it returns the patch without nulls, as decision D17 defines null on creation. A member named
 * `__proto__` is ignored, because assigning it would set the prototype of the result.
 */
export function mergePatch(target: unknown, patch: unknown): unknown {
  if (!isObject(patch)) return patch
  const result: Record<string, unknown> = isObject(target) ? { ...target } : {}
  for (const [key, value] of Object.entries(patch)) {
    if (key === '__proto__') continue
    if (value === null) delete result[key]
    else result[key] = mergePatch(result[key], value)
  }
  return result
}
