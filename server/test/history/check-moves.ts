/** A change of an object's status, in the order in which they were made. `from` is null at its creation. */
export interface Move {
  key: string
  from: string | null
  to: string
}

/**
 * Whether statuses only moved along a table: each move begins where the last one ended, and the table has it. The first
 * state is one of `first`. Gives what is wrong.
 */
export function checkMoves(
  moves: readonly Move[],
  table: Readonly<Record<string, readonly string[]>>,
  first: readonly string[],
): string[] {
  const wrong: string[] = []
  const current = new Map<string, string>()
  for (const { key, from, to } of moves) {
    const before = current.get(key) ?? null
    if (from !== before) wrong.push(`${key} moved from ${from ?? 'nothing'}, where it was ${before ?? 'nothing'}`)
    const allowed = from === null ? first : (table[from] ?? [])
    if (!allowed.includes(to)) wrong.push(`${key} moved from ${from ?? 'nothing'} to ${to}`)
    current.set(key, to)
  }
  return wrong
}
