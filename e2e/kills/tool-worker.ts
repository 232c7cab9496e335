import { appendFile } from 'node:fs/promises'
import { Cadre } from '../../sdk/src/client.ts'

/**
 * A program that makes calls of tools, as a user writes one: each call is a line in the file `TOOL_WORKER_LOG`, written
 * before its result is given. `look_up` may be repeated, `pay` may not.
 */
const { TOOL_WORKER_LOG: log = '', TOOL_WORKER_PROJECT: project = '', TOOL_WORKER_PAUSE_MS: pause = '20' } = process.env
const client = new Cadre()
const made = async (name: string, call: { id: string; attempt: number }): Promise<string> => {
  await appendFile(log, `${JSON.stringify({ name, id: call.id, attempt: call.attempt })}\n`)
  // The time in which a kill leaves the outcome of a call open.
  await new Promise((resolve) => setTimeout(resolve, Number(pause)))
  return `${name} ${call.id}`
}
const stop = new AbortController()
process.on('SIGTERM', () => stop.abort())
await client.tools.serve(
  project,
  { look_up: (_, call) => made('look_up', call), pay: (_, call) => made('pay', call) },
  { signal: stop.signal, concurrency: 8, lease_seconds: 10 },
)
