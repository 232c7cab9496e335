/**
 * The name with the fewest typing errors to `word`, ignoring case; undefined if all have more than `errorsMax`, by default
 * the smaller of 3 and half of the word's length.
 */
export function nearest(
  word: string,
  names: Iterable<string>,
  errorsMax: number = Math.min(3, Math.floor(word.length / 2)),
): string | undefined {
  const ranked = [...new Set(names)]
    .filter((name) => Math.abs(name.length - word.length) <= errorsMax)
    .map((name) => ({ name, errors: typingErrors(word.toLowerCase(), name.toLowerCase()) }))
    .filter(({ errors }) => errors <= errorsMax)
    .toSorted((a, b) => a.errors - b.errors)
  return ranked[0]?.name
}

/** Edit distance with insertions, deletions, replacements and swaps of neighbours (optimal string alignment). */
function typingErrors(from: string, to: string): number {
  const rows: number[][] = [Array.from({ length: to.length + 1 }, (_, j) => j)]
  for (let i = 1; i <= from.length; i += 1) {
    const row = [i]
    for (let j = 1; j <= to.length; j += 1) {
      const isSame = from[i - 1] === to[j - 1]
      const above = rows[i - 1]!
      let errors = Math.min(above[j]! + 1, row[j - 1]! + 1, above[j - 1]! + (isSame ? 0 : 1))
      if (i > 1 && j > 1 && from[i - 1] === to[j - 2] && from[i - 2] === to[j - 1])
        errors = Math.min(errors, rows[i - 2]![j - 2]! + 1)
      row.push(errors)
    }
    rows.push(row)
  }
  return rows[from.length]![to.length]!
}
