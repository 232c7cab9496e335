import { appendFile } from 'node:fs/promises'
import { Cadre } from '../../sdk/src/index.ts'
import type { Work } from '../../sdk/src/index.ts'

/**
 * A program that runs tasks, as a user writes one: two calls of a model by the gateway, and between them a step that may be repeated
 * and one that may not. Each time a step is made it is a line in the file `REMOTE_WORKER_LOG`.
 */
const { REMOTE_WORKER_LOG: log = '', REMOTE_WORKER_PROJECT: project = '' } = process.env
const pause_ms = 50
const client = new Cadre()

const ask = async (work: Work, text: string): Promise<string> => {
  for (;;) {
    work.signal.throwIfAborted()
    // As the clients of the protocol do: what a dead service cut off is asked again.
    const answer = await fetch(`${work.baseURL}/chat/completions`, {
      method: 'POST',
      signal: work.signal,
      headers: { authorization: `Bearer ${work.apiKey}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'builtin/echo', messages: [{ role: 'user', content: text }] }),
    }).catch(() => undefined)
    const body = (await answer?.json().catch(() => undefined)) as
      | { choices: { message: { content: string } }[] }
      | undefined
    if (answer?.ok && body) return body.choices[0]!.message.content
    if (answer && answer.status < 500 && answer.status !== 429)
      throw new Error(`${answer.status} ${JSON.stringify(body)}`)
    await new Promise((resolve) => setTimeout(resolve, 200))
  }
}
const made = (work: Work, name: string, safety: 'keyed' | 'unsafe'): Promise<string> =>
  work.step(
    name,
    async ({ attempt }) => {
      await appendFile(log, `${JSON.stringify({ name, task: work.task.id, attempt })}\n`)
      // The time in which a kill leaves the outcome of a step open.
      await new Promise((resolve) => setTimeout(resolve, pause_ms))
      return `${name} of ${work.task.id}`
    },
    { safety },
  )

const stop = new AbortController()
process.on('SIGTERM', () => stop.abort())
await client.worker({
  project_id: project,
  queue: 'kills',
  signal: stop.signal,
  concurrency: 8,
  lease_seconds: 10,
  async run(work) {
    const first = await ask(work, `first of ${work.task.id}`)
    const looked = await made(work, 'look_up', 'keyed')
    const second = await ask(work, `second after ${first} and ${looked}`)
    const paid = await made(work, 'pay', 'unsafe')
    return `${second}; ${paid}`
  },
})
