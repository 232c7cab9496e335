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
  `A delivery that is not answered with 2xx within 15 s is retried up to ${waits_s.length} times, after about ` +
  `${waits_s.map(span).join(', ')}. Then it has failed, and can be redelivered here.`
