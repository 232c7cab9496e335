import type { Rng } from '../rng.ts'
import type { Faults } from './faults.ts'
import type { SimulatedProcess, VirtualTime } from './virtual-time.ts'

/** Until a client gives up a statement that is not answered. */
const statement_ms = 30_000

/**
 * Transactions of a simulated store, one after the other, atomic. One may be refused, fail before its commit, fail
 * after it with an unknown outcome, or not be answered.
 */
export class Transactions {
  away_until = 0
  readonly #time: VirtualTime
  readonly #rng: Rng
  readonly #faults: Faults

  constructor({ time, rng, faults }: { time: VirtualTime; rng: Rng; faults: Faults }) {
    this.#time = time
    this.#rng = rng
    this.#faults = faults
  }

  get isAway(): boolean {
    return this.#time.now < this.away_until
  }

  /** Runs `work` for a process; what it adds to `commits` happens with the commit. */
  run<T>(process: SimulatedProcess | undefined, work: (commits: (() => void)[]) => T | Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const answer = (act: () => void): void => void this.#time.after(this.#latency_ms(), act, process)
      const execute = async (): Promise<void> => {
        if (this.isAway || this.#faults.hits('store refuses')) return answer(() => reject(connectionLost()))
        const commits: (() => void)[] = []
        let result: T
        try {
          result = await work(commits)
        } catch (error) {
          return answer(() => reject(error instanceof Error ? error : new Error('thrown', { cause: error })))
        }
        if (this.#faults.hits('store fails before the commit')) return answer(() => reject(connectionLost()))
        if (this.#faults.hits('store does not answer')) {
          if (this.#rng.happens(0.5)) commits.forEach((commit) => commit())
          this.#time.after(statement_ms, () => reject(new Error('Query read timeout')), process)
          return
        }
        commits.forEach((commit) => commit())
        if (this.#faults.hits('store fails after the commit')) return answer(() => reject(connectionLost()))
        answer(() => resolve(result))
      }
      this.#time.after(this.#latency_ms(), () => void execute(), process)
    })
  }

  #latency_ms(): number {
    return this.#rng.between(1, 10) + (this.#faults.hits('store is slow') ? this.#rng.between(100, 5000) : 0)
  }
}

function connectionLost(): Error {
  return Object.assign(new Error('the connection was lost'), { code: '08006' })
}
