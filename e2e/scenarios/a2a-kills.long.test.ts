import assert from 'node:assert/strict'
import { it } from 'node:test'
import { TaskState, type StreamResponse, type Task } from '@a2a-js/sdk'
import { a2aClient, a2aMessage, a2aRequest, artifactText, assembled } from '../../server/test/fakes/a2a-client.ts'
import { maker } from '../../server/test/contract/full-installation.ts'
import { eventually, sender } from '../../server/test/harness.ts'
import { useServices } from '../cluster/services.ts'
import type { RunningService } from '../process.ts'
import { api_key } from './installations.ts'

const { start, kill } = useServices({ CADRE_DOORS: 'a2a' })
const script = (...steps: unknown[]): string => JSON.stringify(steps)

/** Frames of a subscription as they are on the wire, with their ids. */
async function* frames(url: string, id: string, after: number): AsyncGenerator<{ id: number; event: StreamResponse }> {
  const response = await fetch(`${url}/tasks/${id}:subscribe`, {
    headers: { authorization: `Bearer ${api_key}`, 'a2a-version': '1.0', 'last-event-id': String(after) },
  })
  assert.equal(response.status, 200)
  yield* parsed(response)
}

async function* parsed(response: Response): AsyncGenerator<{ id: number; event: StreamResponse }> {
  const { StreamResponse: codec } = await import('@a2a-js/sdk')
  let text = ''
  for await (const piece of response.body!.pipeThrough(new TextDecoderStream())) {
    text += piece
    for (let end = text.indexOf('\n\n'); end >= 0; end = text.indexOf('\n\n')) {
      const frame = text.slice(0, end)
      text = text.slice(end + 2)
      const number = /^id: (\d+)$/m.exec(frame)?.[1]
      if (number) yield { id: Number(number), event: codec.fromJSON(JSON.parse(/^data: (.*)$/m.exec(frame)![1]!)) }
    }
  }
}

it('tasks of A2A survive kill -9 of every process: streams resume by their ids, and messages sent again are the same task', async () => {
  let a = await start()
  const b = await start()
  const send = sender(a.url, api_key)
  const project = await maker(send)('/api/v1/projects', { name: 'kills' })
  const path = `/api/v1/projects/${project.id}/agents`
  const config = { model: 'builtin/script', tools: ['request_input'], doors: { a2a: { published: true } } }
  const agent = await maker(send)(path, { name: 'script', config })
  await eventually(async () => (await send('GET', `${path}/${agent.id}`)).body.status === 'running')
  const at = ({ url }: RunningService): string => `${url}/a2a/agents/${agent.id}`
  const headers = { authorization: `Bearer ${api_key}`, 'a2a-version': '1.0', 'content-type': 'application/json' }

  // A stream whose process is killed goes on at another from the last id.
  const words = Array.from({ length: 40 }, (_, i) => `word${i} `)
  const steps = script(...words.flatMap((text) => [{ text }, { delay_ms: 30 }]))
  const message = { messageId: crypto.randomUUID(), role: 'ROLE_USER', parts: [{ text: steps }] }
  const body = JSON.stringify({ message })
  const first = await fetch(`${at(a)}/message:stream`, { method: 'POST', headers, body })
  const seen: { id: number; event: StreamResponse }[] = []
  await assert.rejects(async () => {
    for await (const frame of parsed(first)) {
      seen.push(frame)
      if (seen.length === 12) await kill(a)
    }
  })
  const { id } = seen[0]!.event.payload!.value as Task
  for await (const frame of frames(at(b), id, seen.at(-1)!.id)) seen.push(frame)
  const ids = seen.map((frame) => frame.id)
  assert.deepEqual(
    ids,
    [...new Set(ids)].toSorted((x, y) => x - y),
  )
  assert.equal(assembled(seen.map(({ event }) => event)), words.join(''))
  // A replay after the end has the same frames, but for the text that was taken back.
  const again = await Array.fromAsync(frames(at(b), id, 0))
  assert.equal(assembled(again.map(({ event }) => event)), words.join(''))
  // Links name the process that tells them, where no public address is set.
  const text = (event: StreamResponse): string => JSON.stringify(event).replaceAll(/127\.0\.0\.1:\d+/g, '')
  const known = new Map(seen.map((frame) => [frame.id, text(frame.event)]))
  for (const frame of again) if (known.has(frame.id)) assert.equal(text(frame.event), known.get(frame.id))

  // The same message at another process is the same task, also after its process is gone.
  a = await start()
  const tasks = async (): Promise<number> =>
    (await sender(b.url, api_key)('GET', `/api/v1/projects/${project.id}/tasks`)).body.pagination.total
  const count = await tasks()
  const waits = a2aMessage(script({ delay_ms: 1500 }, { text: 'repeated' }))
  const lost = (await a2aClient(`${at(a)}/.well-known/agent-card.json`, api_key)).sendMessage(a2aRequest(waits))
  lost.catch(() => {})
  await eventually(async () => (await tasks()) === count + 1)
  await kill(a)
  await assert.rejects(lost)
  const other = await a2aClient(`${at(b)}/.well-known/agent-card.json`, api_key)
  const repeated = (await other.sendMessage(a2aRequest(waits))) as Task
  assert.equal(artifactText(repeated), 'repeated')
  assert.equal(await tasks(), count + 1)

  // A question waits over the end of all processes.
  const asks = script(
    { tool_calls: [{ name: 'request_input', arguments: { question: 'Where?' } }] },
    { text: 'To {{tool_result}}.' },
  )
  const asked = (await other.sendMessage(a2aRequest(a2aMessage(asks)))) as Task
  assert.equal(asked.status?.state, TaskState.TASK_STATE_INPUT_REQUIRED)
  await kill(b)
  const c = await start()
  const last = await a2aClient(`${at(c)}/.well-known/agent-card.json`, api_key)
  const answered = (await last.sendMessage(a2aRequest(a2aMessage('Bern', { taskId: asked.id })))) as Task
  assert.deepEqual([answered.id, artifactText(answered)], [asked.id, 'To Bern.'])
})
