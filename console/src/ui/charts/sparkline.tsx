/** What happened in a span of time. */
export interface SparkPoint {
  completed: number
  failed: number
}

const height = 20
const step = 4

/**
 * A row of small bars, one for each point: what went well, and what failed on top of it. `label` says the same in words; the
 * tallest bar of each row is as tall as the row, so rows are not compared with one another.
 */
export function Sparkline({ points, label }: { points: readonly SparkPoint[]; label: string }) {
  const most = Math.max(1, ...points.map(({ completed, failed }) => completed + failed))
  let good = ''
  let bad = ''
  let none = ''
  for (const [n, { completed, failed }] of points.entries()) {
    const x = n * step
    const tall = completed === 0 ? 0 : Math.max(1.5, (completed / most) * height)
    const badTall = failed === 0 ? 0 : Math.min(height - tall, Math.max(1.5, (failed / most) * height))
    if (completed + failed === 0) none += `M${x} ${height - 1}h${step - 1}v1h-${step - 1}z`
    if (tall > 0) good += `M${x} ${height - tall}h${step - 1}v${tall}h-${step - 1}z`
    if (badTall > 0) bad += `M${x} ${height - tall - badTall}h${step - 1}v${badTall}h-${step - 1}z`
  }
  const width = points.length * step
  return (
    <svg
      role="img"
      aria-label={label}
      width={width}
      height={height}
      viewBox={`0 0 ${width} ${height}`}
      className="block"
    >
      <title>{label}</title>
      <path d={none} className="fill-line" />
      <path d={good} className="fill-accent" />
      <path d={bad} className="fill-bad" />
    </svg>
  )
}
