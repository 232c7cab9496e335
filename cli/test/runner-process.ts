import { run } from '../src/run.ts'
import type { Ran, ToRun } from './runner.ts'

/** Runs command lines one after another in this process, as fast as they are, and tells what each has written. */
process.on('message', ({ args, env, isTerminal }: ToRun) => {
  const ran: Ran = { code: 0, stdout: '', stderr: '' }
  const real = { stdout: process.stdout.write, stderr: process.stderr.write }
  for (const name of ['stdout', 'stderr'] as const) {
    process[name].isTTY = isTerminal
    process[name].write = (chunk: string | Uint8Array, ...rest: unknown[]) => {
      ran[name] += typeof chunk === 'string' ? chunk : Buffer.from(chunk).toString()
      const done = rest.at(-1)
      if (typeof done === 'function') done()
      return true
    }
  }
  void run(args, env)
    .then((code) => (ran.code = code))
    .finally(() => {
      for (const name of ['stdout', 'stderr'] as const) process[name].write = real[name]
      process.send!(ran)
    })
})
