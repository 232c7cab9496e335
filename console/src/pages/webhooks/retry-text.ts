import { retryWaits_s } from '#contract/events/webhook-retries.ts'

const sizes = [
  [3600, 'h'],
  [60, 'min'],
  [1, 's'],
] as const

function span(wait_s: number): string {
  const [size, unit] = sizes.find(([size]) => wait_s >= size) ?? [1, 's']
  return `${wait_s / size} ${unit}`
}

const [, ...waits_s] = retryWaits_s

/** When a delivery that failed is tried again, and when it is given up. */
export const retryWords =
  `What is not answered by 2xx within 15 s is tried ${waits_s.length} times more, each about so long after the one before: ` +
  `${waits_s.map(span).join(', ')}. Then it is given up, and can be redelivered here.`
