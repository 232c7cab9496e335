import assert from 'node:assert/strict'
import { it } from 'node:test'
import OpenAI from 'openai'
import { maker } from '../../server/test/contract/full-installation.ts'
import { eventually, sender } from '../../server/test/harness.ts'
import { useServices } from '../cluster/services.ts'
import type { RunningService } from '../process.ts'
import { api_key } from './installations.ts'

const { start, kill } = useServices()
const clientOf = ({ url }: RunningService) => new OpenAI({ apiKey: api_key, baseURL: `${url}/v1`, maxRetries: 0 })
const script = (...steps: unknown[]): string => JSON.stringify(steps)
const textOf = (response: any): string =>
  response.output.flatMap(({ content = [] }: any) => content.map(({ text }: any) => text)).join('')

it('responses survive kill -9 of every process: streams, tools of the caller, and repeated requests', async () => {
  let a = await start()
  const b = await start()
  const send = sender(a.url, api_key)
  const project = await maker(send)('/api/v1/projects', { name: 'kills' })
  const path = `/api/v1/projects/${project.id}/agents`
  const agent = await maker(send)(path, { name: 'script', config: { model: 'builtin/script' } })
  await eventually(async () => (await send('GET', `${path}/${agent.id}`)).body.status === 'running')

  // A stream whose process is killed goes on at another, with every number once.
  const words = Array.from({ length: 40 }, (_, i) => `word${i} `)
  const input = script(...words.flatMap((text) => [{ text }, { delay_ms: 30 }]))
  const seen: any[] = []
  const stream = await clientOf(a).responses.create({ model: 'script', input, stream: true })
  await assert.rejects(async () => {
    for await (const event of stream) {
      seen.push(event)
      if (seen.length === 12) await kill(a)
    }
  })
  const { id } = seen[0].response
  const rest = await clientOf(b).responses.retrieve(id, {
    stream: true,
    starting_after: seen.at(-1).sequence_number,
  })
  for await (const event of rest) seen.push(event)
  const numbers = seen.map(({ sequence_number }) => sequence_number)
  assert.deepEqual(
    numbers,
    [...new Set(numbers)].toSorted((x, y) => x - y),
  )
  assert.equal(seen.at(-1).type, 'response.completed')
  const whole = await clientOf(b).responses.retrieve(id)
  assert.equal(textOf(whole), words.join(''))
  // Each item that was added is done; the text of the one that counts is that of its deltas.
  const [last] = whole.output.slice(-1)
  const deltas = seen.filter(({ type, item_id }) => type === 'response.output_text.delta' && item_id === last!.id)
  assert.equal(deltas.map(({ delta }) => delta).join(''), words.join(''))
  const items = (type: string) => seen.filter((event) => event.type === type).map(({ item }) => item.id)
  assert.deepEqual(items('response.output_item.added'), items('response.output_item.done'))

  // A request whose process is killed is repeated at another, and makes no second task.
  a = await start()
  const body = { model: 'script', input: script({ delay_ms: 1500 }, { text: 'repeated' }) }
  const tasks = async (): Promise<number> =>
    (await sender(b.url, api_key)('GET', `/api/v1/projects/${project.id}/tasks`)).body.pagination.total
  const count = await tasks()
  const first = clientOf(a).responses.create(body)
  first.catch(() => {})
  await eventually(async () => (await tasks()) === count + 1)
  await kill(a)
  await assert.rejects(first)
  const headers = { 'x-stainless-retry-count': '1' }
  const repeated = await clientOf(b).responses.create(body, { headers })
  assert.equal(textOf(repeated), 'repeated')
  assert.equal(await tasks(), count + 1)

  // A call of the caller's tool waits over the end of all processes.
  const tools = [{ type: 'function' as const, name: 'look', strict: false, parameters: { type: 'object' } }]
  const asks = script({ tool_calls: [{ name: 'look', arguments: {} }] }, { text: 'I see {{tool_result}}.' })
  const asked = await clientOf(b).responses.create({ model: 'script', input: asks, tools })
  await kill(b)
  const c = await start()
  const [call] = asked.output
  assert.ok(call?.type === 'function_call')
  const answered = await clientOf(c).responses.create({
    ...{ model: 'script', tools, previous_response_id: asked.id },
    input: [{ type: 'function_call_output', call_id: call.call_id, output: 'the sea' }],
  })
  assert.equal(textOf(answered), 'I see the sea.')
  assert.equal((answered as any).cadre.task_id, (asked as any).cadre.task_id)
})
