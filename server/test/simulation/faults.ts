import type { Rng } from '../rng.ts'

/** Where the simulated world may hurt. */
const points = [
  'store refuses',
  'store fails before the commit',
  'store fails after the commit',
  'store does not answer',
  'store is slow',
  'store is away',
  'beat is lost',
  'lock is lost',
  'worker freezes',
  'worker is killed',
  'worker stops',
  'model refuses',
  'model is away',
  'model hangs',
  'model is nonsense',
  'signal is lost',
  'cancel',
  'scheduler dies',
  'receiver is gone',
  'process is killed',
  'process freezes',
  'process stops',
] as const
export type FaultPoint = (typeof points)[number]

const seldom = 0.01
const often = 0.1

/** Chooses where it hurts. In each world about a third of the points hurt often: faults come together. */
export interface Faults {
  hits(point: FaultPoint): boolean
  /** Nothing hurts any more. */
  stop(): void
}

export function makeFaults(rng: Rng): Faults {
  const shares = new Map(points.map((point) => [point, rng.happens(1 / 3) ? often : seldom]))
  let isOn = true
  return {
    hits: (point) => isOn && rng.happens(shares.get(point)!),
    stop: () => void (isOn = false),
  }
}
