import assert from 'node:assert/strict'
import { it } from 'node:test'
import { maker } from '../../server/test/contract/full-installation.ts'
import { eventually, sender } from '../../server/test/harness.ts'
import { useServices } from '../cluster/services.ts'
import type { RunningService } from '../process.ts'
import { api_key } from '../scenarios/installations.ts'

const { start, kill } = useServices({ CADRE_DOORS: 'agui' })
const script = (...steps: unknown[]): string => JSON.stringify(steps)
const authorization = `Bearer ${api_key}`

interface Frame {
  id: number
  event: { type: string; delta?: string; outcome?: any; [member: string]: unknown }
}

async function* framesOf(response: Response): AsyncGenerator<Frame> {
  let text = ''
  for await (const piece of response.body!.pipeThrough(new TextDecoderStream())) {
    text += piece
    for (let end = text.indexOf('\n\n'); end >= 0; end = text.indexOf('\n\n')) {
      const frame = text.slice(0, end)
      text = text.slice(end + 2)
      const data = /^data: (.*)$/m.exec(frame)?.[1]
      if (data) yield { id: Number(/^id: (\d+)$/m.exec(frame)?.[1] ?? -1), event: JSON.parse(data) }
    }
  }
}

/** The text that an interface shows: what was taken back is not of it. */
function shown(frames: readonly Frame[]): string {
  let text = ''
  for (const { event } of frames) {
    if (event.type === 'CUSTOM' && event['name'] === 'cadre.discarded') text = ''
    if (event.type === 'TEXT_MESSAGE_CONTENT') text += event.delta
  }
  return text
}

it('runs of AG-UI survive kill -9 of every process: streams continue by id, no run begins twice, and interrupts wait', async () => {
  let a = await start()
  const b = await start()
  const send = sender(a.url, api_key)
  const project = await maker(send)('/api/v1/projects', { name: 'kills' })
  const path = `/api/v1/projects/${project.id}/agents`
  const config = { model: 'builtin/script', tools: ['request_input'], doors: { agui: { published: true } } }
  const agent = await maker(send)(path, { name: 'script', config })
  await eventually(async () => (await send('GET', `${path}/${agent.id}`)).body.status === 'running')
  const at = ({ url }: RunningService): string => `${url}/agui/agents/${agent.id}`
  const inputOf = (content: string, more: object = {}) => ({
    ...{ threadId: crypto.randomUUID(), runId: crypto.randomUUID() },
    messages: [{ id: crypto.randomUUID(), role: 'user', content }],
    ...{ tools: [], context: [], state: {}, forwardedProps: {}, ...more },
  })
  const run = (service: RunningService, input: object): Promise<Response> =>
    fetch(at(service), {
      method: 'POST',
      headers: { authorization, 'content-type': 'application/json' },
      body: JSON.stringify(input),
    })

  // A run whose process is killed goes on at another, from the last id.
  const words = Array.from({ length: 40 }, (_, i) => `word${i} `)
  const input = inputOf(script(...words.flatMap((text) => [{ text }, { delay_ms: 30 }])))
  const seen: Frame[] = []
  await assert.rejects(async () => {
    for await (const frame of framesOf(await run(a, input))) {
      seen.push(frame)
      if (seen.length === 12) await kill(a)
    }
  })
  const again = (service: RunningService, after: number): Promise<Response> =>
    fetch(`${at(service)}/runs/${input.runId}`, { headers: { authorization, 'last-event-id': String(after) } })
  const rest = await again(b, seen.at(-1)!.id)
  assert.equal(rest.status, 200)
  for await (const frame of framesOf(rest)) seen.push(frame)
  const ids = seen.map(({ id }) => id)
  assert.deepEqual(
    ids,
    [...new Set(ids)].toSorted((x, y) => x - y),
  )
  assert.equal(shown(seen), words.join(''))
  assert.equal(seen.at(-1)!.event.type, 'RUN_FINISHED')

  // The same run sent again, at another process, is not begun twice.
  a = await start()
  const tasks = async (): Promise<number> =>
    (await sender(b.url, api_key)('GET', `/api/v1/projects/${project.id}/tasks`)).body.pagination.total
  const count = await tasks()
  const slow = inputOf(script({ delay_ms: 1500 }, { text: 'once' }))
  const lost = run(a, slow)
  lost.catch(() => {})
  await eventually(async () => (await tasks()) === count + 1)
  await kill(a)
  const repeated = await Array.fromAsync(framesOf(await run(b, slow)))
  assert.equal(shown(repeated), 'once')
  assert.equal(await tasks(), count + 1)

  // An interrupt waits over the end of all processes.
  const asks = inputOf(
    script(
      { tool_calls: [{ name: 'request_input', arguments: { question: 'Where?' } }] },
      { text: 'To {{tool_result}}.' },
    ),
  )
  const asked = await Array.fromAsync(framesOf(await run(b, asks)))
  const [interrupt] = asked.at(-1)!.event.outcome.interrupts
  await kill(b)
  const c = await start()
  const resume = [{ interruptId: interrupt.id, status: 'resolved', payload: { answer: 'Bern' } }]
  const answered = await Array.fromAsync(
    framesOf(await run(c, { ...asks, runId: crypto.randomUUID(), messages: asks.messages, resume })),
  )
  assert.equal(shown(answered), 'To Bern.')
  assert.equal(
    await sender(c.url, api_key)('GET', `/api/v1/projects/${project.id}/tasks`).then(
      ({ body }) => body.pagination.total,
    ),
    count + 2,
  )
})
