import { define, type AddCommand } from '../../define.ts'
import { UsageError } from '../../failure.ts'
import { serveTools } from '../../streams/serving.ts'

const concurrencyMax = 100

/** `cadre tools serve`. */
export const addToolsServe: AddCommand = (program) =>
  define(program, 'tools serve', {
    summary: 'Handle calls of tools by programs on this machine.',
    description:
      'Claims calls of the tools and runs a program for each. It gets the arguments as JSON on standard input; its standard output ' +
      'is the result, as JSON if it is valid JSON, else as text. An exit code other than 0 is an error: the model reads the end of ' +
      'standard error. CADRE_TOOL_CALL_ID, CADRE_TASK_ID, CADRE_ATTEMPT and CADRE_IDEMPOTENCY_KEY identify the call. Leases are ' +
      'extended while programs run. If a task is canceled or a lease is lost, its program gets SIGTERM. After Ctrl-C no more calls ' +
      'are claimed, and running ones end first. The credential needs the scope tools:execute.',
    args: [],
    examples: [
      'cadre tools serve --exec refund=./refund.sh',
      "cadre tools serve --exec 'refund=node refund.js' --exec look_up=./look-up.sh --concurrency 4",
    ],
    async run(context, _, { exec, concurrency = '10', leaseSeconds = '60' }) {
      const programs = new Map(((exec ?? []) as string[]).map(programOf))
      if (programs.size === 0) throw new UsageError('No tool was given. Use --exec <tool>=<command>.')
      await serveTools(context, {
        programs,
        concurrency: numberOf('--concurrency', concurrency, 1, concurrencyMax),
        lease_seconds: numberOf('--lease-seconds', leaseSeconds, 10, 600),
      })
    },
  })
    .option(
      '--exec <tool=command>',
      'A tool and the command for its calls; can be repeated.',
      (value: string, all: string[] | undefined) => [...(all ?? []), value],
    )
    .option('--concurrency <number>', `Concurrent calls, 1 to ${concurrencyMax}; 10 by default.`)
    .option('--lease-seconds <number>', 'Duration of a lease without a heartbeat, 10 to 600 seconds; 60 by default.')

function programOf(given: string): [string, string] {
  const at = given.indexOf('=')
  const [name, command] = [given.slice(0, at).trim(), given.slice(at + 1).trim()]
  if (at < 1 || command === '') throw new UsageError(`--exec must be <tool>=<command>, not ${given}.`)
  return [name, command]
}

function numberOf(option: string, given: unknown, min: number, max: number): number {
  const number = Number(given)
  if (!Number.isInteger(number) || number < min || number > max)
    throw new UsageError(`${option} must be a number from ${min} to ${max}.`)
  return number
}
