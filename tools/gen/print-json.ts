/** Longest line that a value is written on. */
const width = 120

/**
 * JSON for people who review it as a diff: a value stands on one line where it fits, and every line that does not is
 * cut at its outermost members.
 */
export function printJson(value: unknown): string {
  return `${print(value, '', 0)}\n`
}

/** `before` is how many characters stand on the line already, and one that follows. */
function print(value: unknown, indent: string, before: number): string {
  const flat = onOneLine(value)
  if (typeof value !== 'object' || value === null || indent.length + before + flat.length <= width) return flat
  const inner = `${indent}  `
  if (Array.isArray(value)) {
    return `[\n${value.map((item) => inner + print(item, inner, 1)).join(',\n')}\n${indent}]`
  }
  const members = membersOf(value).map(([key, member]) => {
    const name = `${JSON.stringify(key)}: `
    return inner + name + print(member, inner, name.length + 1)
  })
  return `{\n${members.join(',\n')}\n${indent}}`
}

function onOneLine(value: unknown): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  if (Array.isArray(value)) return `[${value.map(onOneLine).join(', ')}]`
  const members = membersOf(value).map(([key, member]) => `${JSON.stringify(key)}: ${onOneLine(member)}`)
  return members.length > 0 ? `{ ${members.join(', ')} }` : '{}'
}

function membersOf(value: object): [string, unknown][] {
  return Object.entries(value).filter(([, member]) => member !== undefined)
}
