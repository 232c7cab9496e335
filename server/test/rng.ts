/** A reproducible random generator: the same seed gives the same decisions in the same order of calls. */
export interface Rng {
  seed: number
  /** From 0 up to, but not including, 1. */
  next(): number
  /** An integer from the first to the second, inclusive. */
  between(min: number, max: number): number
  /** True with this probability. */
  happens(share: number): boolean
  pick<T>(list: readonly [T, ...T[]] | readonly T[]): T
  shuffled<T>(list: readonly T[]): T[]
  /** A separate generator, for a caller with its own order of draws. */
  fork(): Rng
}

/** Makes a generator from a seed, an integer below 2^32. */
export function makeRng(seed: number): Rng {
  let state = seed >>> 0
  // mulberry32: small, fast, and good enough to choose faults.
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  const between = (min: number, max: number): number => min + Math.floor(next() * (max - min + 1))
  return {
    seed,
    next,
    between,
    happens: (share) => next() < share,
    pick: (list) => {
      if (list.length === 0) throw new Error('there is nothing to pick from')
      return list[between(0, list.length - 1)]!
    },
    shuffled(list) {
      const all = [...list]
      for (let i = all.length - 1; i > 0; i--) {
        const j = between(0, i)
        const moved = all[i]!
        all[i] = all[j]!
        all[j] = moved
      }
      return all
    },
    fork: () => makeRng(Math.floor(next() * 2 ** 32)),
  }
}

/** `CADRE_TEST_SEED` if set, to repeat a run; otherwise a random seed. */
export function testSeed(): number {
  const given = Number(process.env['CADRE_TEST_SEED'] ?? Number.NaN)
  return Number.isInteger(given) && given >= 0 && given < 2 ** 32 ? given : Math.floor(Math.random() * 2 ** 32)
}
