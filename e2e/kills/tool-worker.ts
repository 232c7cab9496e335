import { appendFile } from 'node:fs/promises'
import { Cadre } from '../../sdk/src/client.ts'

/**
 * A program with `TOOL_WORKER_COUNT` workers that make calls of tools, as a user writes them: each call is a line in the file
 * `TOOL_WORKER_LOG`, written before its result is given. `look_up` may be repeated, `pay` may not.
 */
const {
  TOOL_WORKER_LOG: log = '',
  TOOL_WORKER_PROJECT: project = '',
  TOOL_WORKER_PAUSE_MS: pause = '20',
  TOOL_WORKER_COUNT: count = '1',
} = process.env
const made = async (name: string, call: { id: string; attempt: number }): Promise<string> => {
  await appendFile(log, `${JSON.stringify({ name, id: call.id, attempt: call.attempt })}\n`)
  // The time in which a kill leaves the outcome of a call open.
  await new Promise((resolve) => setTimeout(resolve, Number(pause)))
  return `${name} ${call.id}`
}
const stop = new AbortController()
process.on('SIGTERM', () => stop.abort())
const serve = (): Promise<void> =>
  new Cadre().tools.serve(
    project,
    { look_up: (_, call) => made('look_up', call), pay: (_, call) => made('pay', call) },
    { signal: stop.signal, concurrency: 2, lease_seconds: 10 },
  )
await Promise.all(Array.from({ length: Number(count) }, serve))
