import { exitInterrupted, onSignal } from './interrupt.ts'
import { type Build, run } from './run.ts'
import type { ServerCommand } from './server-commands.ts'

/** Runs the command line of this process, and ends the process with its exit code. */
export async function main<C extends ServerCommand>(build: Build<C>): Promise<never> {
  // The reader of the output may stop reading, as `head` does.
  process.stdout.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? 0 : 1))
  onSignal('SIGINT', exitInterrupted)
  const code = await run(process.argv.slice(2), process.env, build)
  await new Promise((resolve) => process.stdout.write('', resolve))
  process.exit(code)
}
