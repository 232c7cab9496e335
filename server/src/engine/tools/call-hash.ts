import { createHash } from 'node:crypto'

/**
 * The value that binds an approval to a call: SHA-256, as 64 hexadecimal digits, of the tool's name, a line feed, and
 * the arguments as canonical JSON: members in the order of their UTF-16 code units, without white space (as RFC 8785).
 */
export function callHash(tool: string, args: unknown): string {
  return createHash('sha256')
    .update(`${tool}\n${canonicalJson(args)}`)
    .digest('hex')
}

/** JSON with the members of every object in one order, so that equal values have equal texts. */
export function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null'
  const members = Object.entries(value)
    .filter(([, member]) => member !== undefined)
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, member]) => `${JSON.stringify(name)}:${canonicalJson(member)}`)
  return `{${members.join(',')}}`
}
