/**
 * Does many small writes in few transactions without making any of them wait: while one group is being written, those
 * that come gather, and the next group takes them all. Under load a commit is shared by dozens; alone, a write begins
 * at once.
 */
export class GroupCommit<Op, Result> {
  readonly #commit: (ops: readonly Op[]) => Promise<(Result | Error)[]>
  readonly #groupMax: number
  readonly #waiting: { op: Op; resolve: (result: Result) => void; reject: (error: unknown) => void }[] = []
  #lanes: number

  /**
   * `commit` writes a group and gives a result or an error for each of its ops, in their order; when it throws, all of
   * them fail. At most `lanes` groups are written at a time.
   */
  constructor(
    commit: (ops: readonly Op[]) => Promise<(Result | Error)[]>,
    { lanes, groupMax }: { lanes: number; groupMax: number },
  ) {
    this.#commit = commit
    this.#lanes = lanes
    this.#groupMax = groupMax
  }

  submit(op: Op): Promise<Result> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ op, resolve, reject })
      if (this.#lanes > 0) void this.#drain()
    })
  }

  async #drain(): Promise<void> {
    this.#lanes -= 1
    // Those that were submitted in the same turn of the event loop belong together.
    await Promise.resolve()
    while (this.#waiting.length > 0) {
      const group = this.#waiting.splice(0, this.#groupMax)
      try {
        const results = await this.#commit(group.map(({ op }) => op))
        group.forEach(({ resolve, reject }, i) => {
          const result = results[i]
          if (result instanceof Error) reject(result)
          else resolve(result as Result)
        })
      } catch (error) {
        for (const { reject } of group) reject(error)
      }
    }
    this.#lanes += 1
  }
}
