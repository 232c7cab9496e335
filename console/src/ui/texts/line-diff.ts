/** A line of two texts: in both, only in the first, or only in the second. */
export interface DiffLine {
  kind: 'same' | 'out' | 'in'
  text: string
  /** Its numbers in the texts that have it, from 1. */
  before: number | undefined
  after: number | undefined
}

/** Lines of each text that are compared; texts with more are shown as wholly changed. */
export const comparedLines = 2000

/** What became of the lines of a text: the shortest list of lines taken out and put in. */
export function diffLines(before: string, after: string): DiffLine[] {
  const a = before === '' ? [] : before.split('\n')
  const b = after === '' ? [] : after.split('\n')
  const rows = a.length <= comparedLines && b.length <= comparedLines ? longestCommon(a, b) : undefined
  const lines: DiffLine[] = []
  let i = 0
  let j = 0
  while (i < a.length || j < b.length) {
    if (rows && i < a.length && j < b.length && a[i] === b[j]) {
      lines.push({ kind: 'same', text: a[i]!, before: ++i, after: ++j })
    } else if (i < a.length && (j >= b.length || !rows || rows[i + 1]![j]! >= rows[i]![j + 1]!)) {
      lines.push({ kind: 'out', text: a[i]!, before: ++i, after: undefined })
    } else {
      lines.push({ kind: 'in', text: b[j]!, before: undefined, after: ++j })
    }
  }
  return lines
}

/** How many lines the rests of both texts have in common, from every pair of lines. */
function longestCommon(a: readonly string[], b: readonly string[]): Uint16Array[] {
  const rows = Array.from({ length: a.length + 1 }, () => new Uint16Array(b.length + 1))
  for (let i = a.length - 1; i >= 0; i--)
    for (let j = b.length - 1; j >= 0; j--)
      rows[i]![j] = a[i] === b[j] ? rows[i + 1]![j + 1]! + 1 : Math.max(rows[i + 1]![j]!, rows[i]![j + 1]!)
  return rows
}
