/** A member that is not what it was: its way from the top, and both values as they are shown. */
export interface Change {
  member: string
  before: string | undefined
  after: string | undefined
}

/** What differs between the two sides of an entry, member by member, in the order in which they stand. Lists are one value, as in the log. */
export function changesOf(before: object | null, after: object | null): Change[] {
  const [was, is] = [flat(before), flat(after)]
  return [...new Set([...was.keys(), ...is.keys()])].map((member) => ({
    member,
    before: was.get(member),
    after: is.get(member),
  }))
}

function flat(value: object | null, way = '', found = new Map<string, string>()): Map<string, string> {
  for (const [name, inner] of Object.entries(value ?? {})) {
    const member = way === '' ? name : `${way}.${name}`
    if (isTree(inner)) flat(inner, member, found)
    else found.set(member, typeof inner === 'string' ? inner : JSON.stringify(inner))
  }
  return found
}

function isTree(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && Object.keys(value).length > 0
}
