import { fork } from 'node:child_process'
import { once } from 'node:events'

/** A command line to be run. */
export interface ToRun {
  args: readonly string[]
  env: Record<string, string>
  /** Whether it takes its output for a terminal. */
  isTerminal: boolean
}

/** How a command line ended. */
export interface Ran {
  code: number
  stdout: string
  stderr: string
}

/**
 * A process that runs command lines one after another: starting one for each would take most of the time of a test of all of
 * them.
 */
export class Runner {
  readonly #child = fork(new URL('./runner-process.ts', import.meta.url), {
    // What the test runner was started with is not meant for it: it would write over the runner's report.
    execArgv: [],
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  })

  async run(args: readonly string[], env: Record<string, string>, isTerminal = false): Promise<Ran> {
    const message = once(this.#child, 'message')
    this.#child.send({ args, env, isTerminal } satisfies ToRun)
    const [ran] = (await message) as [Ran]
    return ran
  }

  stop(): void {
    this.#child.kill()
  }
}
