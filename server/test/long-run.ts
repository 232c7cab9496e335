import { makeRng, testSeed } from './rng.ts'

/** Whether this is `npm run test:long`: tests that have a long form then take it. */
export const isLongRun = process.env['CADRE_TEST_LONG'] === '1'

/** Whether long tests take their full size: `CADRE_TEST_FULL=1 npm run test:long`, for a night. */
export const isFullRun = process.env['CADRE_TEST_FULL'] === '1'

/** The `skip` of a test that only a long run has. */
export const skipInShortRun = isLongRun ? false : 'runs with `npm run test:long`'

/** The size of a test: how many rows, rounds or processes. */
export function sizeOf(size: { short: number; long: number }): number {
  return isLongRun ? size.long : size.short
}

/** The size of a test that only a long run has: `full` with `CADRE_TEST_FULL=1`, `usual` otherwise. */
export function longSizeOf(size: { usual: number; full: number }): number {
  return isFullRun ? size.full : size.usual
}

const seed = testSeed()
let draws = 0

/**
 * All cases of a loop in a long run, and in a short one at least `count` of them, chosen by `CADRE_TEST_SEED`, in their
 * order.
 */
export function sample<T>(cases: readonly T[], count: number): T[] {
  return isLongRun ? [...cases] : draw(cases, count)
}

/** All cases of a test that only a long run has with `CADRE_TEST_FULL=1`, and otherwise `count` of them, as `sample` does. */
export function longSample<T>(cases: readonly T[], count: number): T[] {
  return isFullRun ? [...cases] : draw(cases, count)
}

function draw<T>(cases: readonly T[], count: number): T[] {
  if (cases.length <= count) return [...cases]
  const chosen = new Set(
    makeRng((seed + draws++) >>> 0)
      .shuffled(cases.map((_, at) => at))
      .slice(0, count),
  )
  return cases.filter((_, at) => chosen.has(at))
}
