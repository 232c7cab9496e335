import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { APIError } from '#sdk/errors.ts'
import type { ServedToolCall } from '#sdk/serving/serve-tools.ts'
import type { Environment } from '../config/config.ts'
import type { Context } from '../context.ts'
import { onSignal } from '../interrupt.ts'
import { plain } from '../output/plain.ts'

interface Serving {
  /** Commands by the names of tools. */
  programs: ReadonlyMap<string, string>
  concurrency: number
  lease_seconds: number
}

/** Maximum output of a program, equal to that of a result. */
const output_bytes_max = 524_288
/** Characters of standard error that the model reads. */
const errorMax = 2000
/** A program that does not end after SIGTERM is killed after this time. */
const kill_ms = 5000

const endings = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

/** Claims calls and runs their programs until a signal; then waits for running calls. */
export async function serveTools(context: Context, { programs, ...options }: Serving): Promise<void> {
  const { out } = context
  const stop = new AbortController()
  const removes = endings.map((name) => onSignal(name, () => stop.abort()))
  const report = (call: ServedToolCall, result: string): void => {
    if (out.options.json) out.event({ tool_call_id: call.id, task_id: call.task_id, name: call.name, result })
    else out.note(`${plain(call.name)} ${call.id}: ${plain(result)}`)
  }
  const handlers = Object.fromEntries(
    [...programs].map(([name, command]) => [
      name,
      async (args: unknown, call: ServedToolCall) => {
        try {
          const output = await run(context.env, command, args, call)
          report(call, 'completed')
          return output
        } catch (error) {
          report(call, error instanceof Error ? `failed: ${error.message}` : 'failed')
          throw error
        }
      },
    ]),
  )
  out.note(`Serving ${[...programs.keys()].map(plain).join(', ')}. Ctrl-C stops.`)
  try {
    await context.client().tools.serve(await context.project(), handlers, {
      ...options,
      signal: stop.signal,
      onError: (error, call) => {
        const reason = error instanceof APIError ? `${error.message} (${error.code})` : String(error)
        out.note(`cadre: ${call ? `${call.name} ${call.id}: ` : ''}${plain(reason)}`)
      },
    })
  } finally {
    for (const remove of removes) remove()
  }
}

/** Runs a command in a shell, and returns its output. If it fails, throws with the end of its standard error. */
async function run(env: Environment, command: string, args: unknown, call: ServedToolCall): Promise<unknown> {
  const child = spawn(command, {
    shell: true,
    detached: true,
    stdio: ['pipe', 'pipe', 'pipe'],
    env: {
      ...env,
      CADRE_TOOL_CALL_ID: call.id,
      CADRE_TASK_ID: call.task_id,
      CADRE_ATTEMPT: String(call.attempt),
      CADRE_IDEMPOTENCY_KEY: call.idempotency_key,
    },
  })
  let kill: NodeJS.Timeout | undefined
  const end = (signal: NodeJS.Signals): void => {
    // Signals the whole process group, because a shell does not forward signals.
    if (child.pid !== undefined && child.exitCode === null) {
      try {
        process.kill(-child.pid, signal)
      } catch {
        // The process has already ended.
      }
    }
  }
  const onAbort = (): void => {
    end('SIGTERM')
    kill = setTimeout(() => end('SIGKILL'), kill_ms)
  }
  call.signal.addEventListener('abort', onAbort)
  let [output, errors, isTooLong] = ['', '', false]
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    if (output.length + text.length > output_bytes_max) {
      isTooLong = true
      end('SIGTERM')
    } else output += text
  })
  child.stderr.setEncoding('utf8').on('data', (text: string) => (errors = (errors + text).slice(-errorMax)))
  // A program may ignore its arguments.
  child.stdin.on('error', () => {})
  child.stdin.end(JSON.stringify(args))
  try {
    const [code, signal] = (await once(child, 'close')) as [number | null, NodeJS.Signals | null]
    if (isTooLong) throw new Error(`The program wrote more than ${output_bytes_max} bytes.`)
    if (code !== 0) throw new Error(errors.trim() || `The program ended with ${signal ?? `exit code ${code}`}.`)
    return parsed(output.trim())
  } finally {
    clearTimeout(kill)
    call.signal.removeEventListener('abort', onAbort)
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    return text
  }
}
