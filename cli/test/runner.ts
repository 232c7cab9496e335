import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { atEnd, isGroup } from '../../server/test/at-end.ts'

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

/** The process of the files that this one runs, none of which uses it while it runs a command line for another. */
let shared: ChildProcess | undefined

/**
 * Runs command lines one after another in a process that the files of a group share. A process for each command line
 * or file would take most of the time of these tests. Command lines have only the environment that they are given.
 */
export class Runner {
  #isRunning = false

  async run(args: readonly string[], env: Record<string, string>, isTerminal = false): Promise<Ran> {
    const child = (shared ??= start())
    const message = once(child, 'message')
    this.#isRunning = true
    child.send({ args, env, isTerminal } satisfies ToRun)
    const [ran] = (await message) as [Ran]
    this.#isRunning = false
    return ran
  }

  stop(): void {
    // What a failed test left running is not the next file's.
    if (!isGroup || this.#isRunning) end()
  }
}

function start(): ChildProcess {
  return fork(new URL('./runner-process.ts', import.meta.url), {
    // What the test runner was started with is not meant for it: it would write over the runner's report.
    execArgv: [],
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  })
}

function end(): void {
  shared?.kill()
  shared = undefined
}

atEnd.push(async () => end())
