import { FairTurns, type FairTurnsOptions } from '../../platform/fair-turns.ts'

/** Limits concurrent work per project: projects take turns for a number of places. */
export class ProjectTurns {
  readonly #turns: FairTurns

  constructor({ places, ofProject, waiting }: { places: number; ofProject: number; waiting: number }) {
    const options: FairTurnsOptions = {
      places,
      ofOrganization: places,
      ofProject,
      waiting: { ofProject: waiting, ofOrganization: waiting, all: waiting },
    }
    this.#turns = new FairTurns(options)
  }

  /**
   * Runs `work` once there is a free place.
   * @throws `TooManyWait` if too many wait, and the reason of `signal`
   */
  async run<T>(project_id: number, work: () => Promise<T>, signal: AbortSignal = never): Promise<T> {
    const release = await this.#turns.take({ org_id: '', project_id }, signal)
    try {
      return await work()
    } finally {
      release()
    }
  }
}

const never = new AbortController().signal

/**
 * Pieces that a process stores or reads at a time. Each takes a database connection, and most connections are for
 * requests and tasks. One project always leaves a place to others.
 */
export const pieceTurns = { places: 4, ofProject: 3, waiting: 10_000 } as const

/**
 * Uploads that a process receives at a time. Each has few pieces in memory, and the bodies of waiting uploads are not
 * read, so the total memory is bounded.
 */
export const uploadTurns = { places: 64, ofProject: 56, waiting: 500 } as const
