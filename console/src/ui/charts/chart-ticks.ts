/** Round values from 0 to the first that holds `most`, four or five of them. */
export function ticksUpTo(most: number): number[] {
  if (!(most > 0)) return [0, 1]
  const rough = most / 4
  const power = 10 ** Math.floor(Math.log10(rough))
  const size = [1, 2, 2.5, 5, 10].map((of) => of * power).find((one) => one >= rough)!
  const count = Math.ceil(most / size - 1e-9)
  return Array.from({ length: count + 1 }, (_, n) => Number((n * size).toPrecision(12)))
}
