/** Means of neighbours, so that at most `countMax` values remain; null where none of them is known. */
export function condensed(values: readonly (number | null)[], countMax: number): (number | null)[] {
  const size = Math.ceil(values.length / countMax)
  if (size <= 1) return [...values]
  return Array.from({ length: Math.ceil(values.length / size) }, (_, nth) => {
    const known = values.slice(nth * size, (nth + 1) * size).filter((value) => value !== null)
    return known.length === 0 ? null : known.reduce((sum, value) => sum + value, 0) / known.length
  })
}

/** Runs of known values, each with its place. */
export function piecesOf(values: readonly (number | null)[]): { from: number; values: number[] }[] {
  const pieces: { from: number; values: number[] }[] = []
  values.forEach((value, at) => {
    if (value === null) return
    const last = pieces.at(-1)
    if (last && last.from + last.values.length === at) last.values.push(value)
    else pieces.push({ from: at, values: [value] })
  })
  return pieces
}
