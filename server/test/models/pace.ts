import { testSeed } from '../rng.ts'

/** How long a model goes on, and from which seed: `CADRE_MODEL_RUNS` runs where it is set, else as many as fit in its time. */
export interface Pace {
  seed: number
  numRuns: number
  /** Whether there is time for one more; while a failure is made smaller there is a while of it again. */
  goesOn(): boolean
  failed(): void
  /** Counts what was done, for the line that `report` prints. */
  count(commands: number): void
  report(): void
}

/** Time in which a failure is made smaller. */
const shrinking_ms = 60_000

/**
 * The pace of one model. A run that comes when the time is over does nothing and passes, so that none is left behind half
 * done. `CADRE_TEST_SEED` has a run again, as far as the order in which the service does its own work allows.
 */
export function makePace(name: string, time_ms: number): Pace {
  const seed = testSeed()
  const asked = Number(process.env['CADRE_MODEL_RUNS'] ?? 0)
  const start_ms = performance.now()
  let until = asked > 0 ? Infinity : start_ms + time_ms
  let isFailing = false
  let runs = 0
  let commands = 0
  console.log(`${name}: CADRE_TEST_SEED=${seed}`)
  return {
    // fast-check takes its seed as 32 bits with a sign.
    seed: seed | 0,
    numRuns: asked > 0 ? asked : 10_000,
    goesOn: () => performance.now() < until,
    failed() {
      if (!isFailing) until = performance.now() + shrinking_ms
      isFailing = true
    },
    count(some) {
      runs += 1
      commands += some
    },
    report() {
      const seconds = ((performance.now() - start_ms) / 1000).toFixed(1)
      console.log(`${name}: ${runs} runs, ${commands} commands in ${seconds} s`)
    },
  }
}
