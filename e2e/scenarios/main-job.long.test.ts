import assert from 'node:assert/strict'
import { createParser } from 'eventsource-parser'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { startFakeModelServer, type FakeModelServer } from '../../server/test/fake-models/fake-model-server.ts'
import { eventually, sender, type Send } from '../../server/test/harness.ts'
import { startProcess, temporaryFolder, type RunningService } from '../process.ts'

const api_key = 'cadre_00112233445566778899aabbccddeeff'

let folder: Awaited<ReturnType<typeof temporaryFolder>>
let models: FakeModelServer
let env: Record<string, string>
let service: RunningService
let send: Send
let agents: string
let agent: string

before(async () => {
  folder = await temporaryFolder()
  models = await startFakeModelServer()
  env = {
    CADRE_DATA_DIR: join(folder.path, '.cadre'),
    CADRE_ADMIN_API_KEY: api_key,
    OPENAI_BASE_URL: models.base_url,
    OPENAI_API_KEY: 'sk-of-the-provider',
  }
  service = await startProcess(env)
  send = sender(service.url, api_key)
  const project = await send('POST', '/api/v1/projects', { body: { name: 'support' } })
  agents = `/api/v1/projects/${project.body.id}/agents`
  const created = await send('POST', agents, {
    body: { name: 'answers', config: { model: 'openai/gpt-4o-mini', temperature: 0.2, system_prompt: 'Be brief.' } },
  })
  assert.equal(created.status, 201)
  agent = `${agents}/${created.body.id}`
})

after(async () => {
  await service.end()
  await models.close()
  await folder.remove()
})

test('an agent answers a task by calling an OpenAI-compatible server, and its record shows the work', async () => {
  models.next({ do: 'answer', text: 'Paris.', usage: { input_tokens: 21, output_tokens: 3 } })
  const task = await send('POST', `${agent}/tasks?wait=30`, { body: { input: 'The capital of France?' } })
  assert.equal(task.status, 201)
  assert.equal(task.body.status, 'completed')
  assert.equal(task.body.output.content, 'Paris.')
  assert.equal(task.body.usage.input_tokens, 21)
  assert.equal(task.body.usage.output_tokens, 3)

  const asked = models.requests.at(-1)
  assert.equal(asked?.headers.authorization, 'Bearer sk-of-the-provider')
  assert.equal(asked?.body.model, 'gpt-4o-mini')
  assert.equal(asked?.body.temperature, 0.2)
  assert.deepEqual(asked?.body.messages, [
    { role: 'system', content: 'Be brief.' },
    { role: 'user', content: 'The capital of France?' },
  ])

  const { body } = await send('GET', agent)
  assert.equal(body.status, 'running')
  assert.deepEqual(
    { ...body.stats, avg_response_time: 0 },
    { total_tasks: 1, completed_tasks: 1, failed_tasks: 0, success_rate: 1, avg_response_time: 0 },
  )
  assert.ok(body.stats.avg_response_time > 0)
  assert.ok(body.last_activity)

  const logs = await send('GET', `${agent}/logs`)
  assert.ok(logs.body.logs.some(({ message }: { message: string }) => /completed/i.test(message)))
  assert.ok(!JSON.stringify(logs.body).includes('sk-of-the-provider'))

  // Usage is written in batches, so it shows a moment later.
  const metrics = await eventually(async () => {
    const { body: found } = await send('GET', `${agent}/metrics?interval=1m`)
    return found.metrics.resource_usage.network_in > 0 && found.metrics.performance.tokens_per_minute > 0 && found
  })
  assert.equal(metrics.metrics.tasks.completed, 1)
  assert.equal(metrics.metrics.tasks.success_rate, 1)
  assert.ok(metrics.metrics.resource_usage.network_out > 0)
  assert.ok(metrics.metrics.performance.p95_response_time > 0)
  assert.ok(metrics.metrics.time_series.some((point: { tasks_completed: number }) => point.tasks_completed === 1))
})

test('a task that a provider fails for good is failed with the reason, and counted', async () => {
  models.next({ do: 'status', status: 401, message: 'no such key' })
  const task = await send('POST', `${agent}/tasks?wait=30`, { body: { input: 'Are you there?' } })
  assert.equal(task.body.status, 'failed')
  assert.equal(task.body.error.code, 'provider_credentials_refused')
  const { body } = await send('GET', agent)
  assert.equal(body.stats.failed_tasks, 1)
})

test('a task goes on after kill -9: nothing is lost, and it finishes once', async () => {
  models.next({ do: 'stall', pieces: 1, text: 'Never finished' })
  const created = await send('POST', `${agent}/tasks`, { body: { input: 'Survive.' } })
  assert.equal(created.status, 201)
  await models.waitForRequests(3)
  await service.end('SIGKILL')

  models.always({ do: 'answer', text: 'Still here.' })
  service = await startProcess(env)
  send = sender(service.url, api_key)
  const ready_at = performance.now()
  const task = await send('GET', `${agents.replace('/agents', '')}/tasks/${created.body.id}?wait=30`)
  assert.equal(task.body.status, 'completed')
  assert.equal(task.body.output.content, 'Still here.')
  assert.ok(performance.now() - ready_at < 5000, 'it went on soon after the restart')

  const { body } = await send('GET', `${agents.replace('/agents', '')}/tasks/${created.body.id}/events?limit=100`)
  const sequence = body.events.map((event: { sequence: number }) => event.sequence)
  assert.deepEqual(
    sequence,
    sequence.map((_: number, i: number) => i + 1),
    'the sequence is dense',
  )
  const ends = body.events.filter(({ type }: { type: string }) => type === 'task.completed')
  assert.equal(ends.length, 1)
})

test('a stream shows a task from its snapshot to its end, text as it arrives', async () => {
  models.next({ do: 'answer', text: 'One two three.' })
  const response = await fetch(new URL(`${agent}/tasks`, service.url), {
    method: 'POST',
    headers: { 'x-api-key': api_key, 'content-type': 'application/json', accept: 'text/event-stream' },
    body: JSON.stringify({ input: 'Count.' }),
  })
  assert.match(response.headers.get('content-type') ?? '', /^text\/event-stream/)
  const frames: { id?: string | undefined; event?: string | undefined; data: string }[] = []
  const parser = createParser({ onEvent: (frame) => frames.push(frame) })
  for await (const chunk of response.body!.pipeThrough(new TextDecoderStream())) parser.feed(chunk)

  assert.equal(frames[0]?.event, 'task.snapshot')
  assert.equal(frames.at(-1)?.event, 'task.completed')
  const streamed = frames.filter(({ event }) => event === 'message.delta' || event === 'message.snapshot')
  // A snapshot stands for all that came before it; the end of a fast answer is in `message.completed` alone.
  const text = streamed.reduce(
    (so_far, { event, data }) => (event === 'message.snapshot' ? '' : so_far) + JSON.parse(data).data.text,
    '',
  )
  assert.ok('One two three.'.startsWith(text))
  assert.ok(frames.some(({ event, data }) => event === 'message.completed' && data.includes('One two three.')))
  assert.ok(streamed.every(({ id }) => id === undefined))
})
