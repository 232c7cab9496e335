import { makeRng, testSeed } from './rng.ts'

/** Whether this is `npm run test:long`: tests that have a long form then take it. */
export const isLongRun = process.env['CADRE_TEST_LONG'] === '1'

/** The `skip` of a test that only a long run has. */
export const skipInShortRun = isLongRun ? false : 'runs with `npm run test:long`'

/** The size of a test: how many rows, rounds or processes. */
export function sizeOf(size: { short: number; long: number }): number {
  return isLongRun ? size.long : size.short
}

const seed = testSeed()
let draws = 0

/**
 * All cases of a loop in a long run, and in a short one at least `count` of them, chosen by `CADRE_TEST_SEED`, in their
 * order.
 */
export function sample<T>(cases: readonly T[], count: number): T[] {
  if (isLongRun || cases.length <= count) return [...cases]
  const chosen = new Set(
    makeRng((seed + draws++) >>> 0)
      .shuffled(cases.map((_, at) => at))
      .slice(0, count),
  )
  return cases.filter((_, at) => chosen.has(at))
}
