import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import OpenAI from 'openai'
import { openaiOperations } from '#contract/doors/openai.ts'
import { requiredScope } from '#contract/core/scopes.ts'
import { eventually, startAnother, type TestService } from '../../../test/harness.ts'
import { shareTestService } from '../../../test/shared-service.ts'
import { makeRng } from '../../../test/rng.ts'

let service: TestService
let client: OpenAI
const script = (...steps: unknown[]): string => JSON.stringify(steps)

before(async () => {
  service = await shareTestService()
  const { body } = await service.send('POST', '/api/v1/projects', { body: { name: 'door' } })
  const agents = `/api/v1/projects/${body.id}/agents`
  const config = { model: 'builtin/script' }
  const agent = (await service.send('POST', agents, { body: { name: 'script', config } })).body
  await eventually(async () => (await service.send('GET', `${agents}/${agent.id}`)).body.status === 'running')
  client = new OpenAI({ apiKey: service.owner.api_key, baseURL: `${service.url}/v1`, maxRetries: 0 })
})
after(() => service.stop())

const countTasks = async (text: string): Promise<number> =>
  (
    await service.sql<{ tasks: number }>`select count(*)::int as tasks from task where input::text like ${`%${text}%`}`
  )[0]!.tasks
const states = async (): Promise<string[]> =>
  (await service.sql<{ state: string }>`select state from door_request order by id`).map(({ state }) => state)
const post = (
  input: string,
  headers: Record<string, string> = {},
  signal: AbortSignal | null = null,
  url = service.url,
) =>
  fetch(`${url}/v1/responses`, {
    method: 'POST',
    headers: { authorization: `Bearer ${service.owner.api_key}`, 'content-type': 'application/json', ...headers },
    body: JSON.stringify({ model: 'script', input }),
    signal,
  })
/** Sends a request and cuts its connection once its task exists. */
async function cut(input: string, mark: string): Promise<void> {
  const closed = new AbortController()
  const sent = post(input, {}, closed.signal)
  await eventually(async () => (await countTasks(mark)) > 0)
  closed.abort()
  await assert.rejects(sent)
  await eventually(async () => (await states()).at(-1) === 'broken')
}

describe('a request that is repeated without a key', () => {
  it('a request without a key that is repeated after its connection broke continues its task, with and without a retry count', async () => {
    for (const headers of [{}, { 'x-stainless-retry-count': '1' }] as Record<string, string>[]) {
      const mark = `cut ${JSON.stringify(headers).length}`
      const input = script({ delay_ms: 500 }, { text: mark })
      await cut(input, mark)
      const { output } = (await (await post(input, headers)).json()) as any
      assert.equal(output[0].content[0].text, mark)
      assert.equal(await countTasks(mark), 1)
      // That response was complete, so without a retry count the next request is a new task.
      await post(input)
      assert.equal(await countTasks(mark), 2)
    }
  })

  it('an equal request without a key is a new task while the first one is being answered and after it was', async () => {
    const input = script({ delay_ms: 100 }, { text: 'at once' })
    await Promise.all([post(input), post(input, { 'x-stainless-retry-count': '1' })])
    assert.equal(await countTasks('at once'), 2)
    await post(input)
    assert.equal(await countTasks('at once'), 3)
  })

  it('an equal request with a retry count gets the earlier response once', async () => {
    const input = script({ text: 'answered' })
    const first = (await (await post(input)).json()) as { id: string }
    await eventually(async () => (await states()).at(-1) === 'answered')
    const again = (await (await post(input, { 'x-stainless-retry-count': '1' })).json()) as { id: string }
    assert.equal(again.id, first.id)
    assert.equal(await countTasks('answered'), 1)
  })

  it('a request that is repeated without a key after its task was deleted is another task', async () => {
    const mark = 'deleted meanwhile'
    const input = script({ delay_ms: 500 }, { text: mark })
    await cut(input, mark)
    await service.sql`delete from task where input::text like ${`%${mark}%`}`
    const { output } = (await (await post(input)).json()) as any
    assert.equal(output[0].content[0].text, mark)
  })

  it('an equal request to another process after a broken connection continues the task', async () => {
    const other = await startAnother(service)
    try {
      const input = script({ delay_ms: 500 }, { text: 'elsewhere' })
      await cut(input, 'elsewhere')
      const answer = (await (await post(input, {}, null, other.url)).json()) as any
      assert.equal(answer.status, 'completed')
      assert.equal(await countTasks('elsewhere'), 1)
    } finally {
      await other.stop()
    }
  })
})

it('the same Idempotency-Key is one task, also while the task runs', async () => {
  const input = script({ text: 'keyed' })
  const key = { 'idempotency-key': 'one' }
  const first = (await (await post(input, key)).json()) as { id: string }
  const second = await post(input, key)
  assert.deepEqual([second.status, ((await second.json()) as { id: string }).id], [200, first.id])
  assert.equal(await countTasks('keyed'), 1)
  const other = await post(script({ text: 'another' }), key)
  assert.deepEqual([other.status, ((await other.json()) as any).error.code], [422, 'idempotency_key_reused'])
})

it('equal chat requests with an Idempotency-Key that come together get one answer', async () => {
  const chat = (model: string) =>
    service.send('POST', '/v1/chat/completions', {
      headers: { 'idempotency-key': `together ${model}` },
      body: { model, messages: [{ role: 'user', content: script({ delay_ms: 20 }, { text: 'together' }) }] },
    })
  const replies = await Promise.all(Array.from({ length: 8 }, () => chat('script')))
  assert.deepEqual(
    replies.map(({ status, body }) => [status, body.id]),
    replies.map(() => [200, replies[0]!.body.id]),
  )
  // A refusal that is stored for the key is final as well.
  const refused = [await chat('missing'), await chat('missing')]
  assert.deepEqual(
    refused.map(({ status, headers }) => [status, headers.get('x-should-retry')]),
    refused.map(() => [404, 'false']),
  )
})

it('a stream that is dropped at any frame is resumed with every delta once', async () => {
  const words = Array.from({ length: 60 }, (_, i) => `word${i}`)
  const steps = words.flatMap((word) => [{ text: `${word} ` }, { delay_ms: 2 }])
  const whole = words.map((word) => `${word} `).join('')
  const rng = makeRng(7)
  for (let round = 0; round < 8; round += 1) {
    const stream = await client.responses.create({ model: 'script', input: script(...steps), stream: true })
    const seen: any[] = []
    const stopAt = rng.between(1, 40)
    for await (const event of stream) {
      seen.push(event)
      if (seen.length >= stopAt) break
    }
    const rest = await client.responses.retrieve(seen[0].response.id, {
      stream: true,
      starting_after: seen.at(-1).sequence_number,
    })
    for await (const event of rest) seen.push(event)
    const deltas = seen.filter(({ type }) => type === 'response.output_text.delta')
    assert.equal(deltas.map(({ delta }) => delta).join(''), whole)
    const numbers = seen.map(({ sequence_number }) => sequence_number)
    assert.equal(new Set(numbers).size, numbers.length)
    const replayed = await Array.fromAsync(await client.responses.retrieve(seen[0].response.id, { stream: true }))
    assert.deepEqual(replayed, seen)
  }
})

describe('every operation of the door', () => {
  const path = (of: string): string => of.replaceAll(/\{\w+\}/g, 'x').replace('*', 'x')
  it('every OpenAI operation refuses callers without credentials, and cookies', async () => {
    for (const { method, path: of } of openaiOperations) {
      const reply = await service.send(method, path(of), { key: null })
      assert.deepEqual([reply.status, reply.body.error.code], [401, 'invalid_api_key'], `${method} ${of}`)
    }
  })

  it('every OpenAI operation refuses an insufficient scope', async () => {
    const { body } = await service.send('POST', '/api/v1/auth/api-keys', {
      body: { name: 'projects', scopes: ['projects:read'] },
    })
    for (const { method, path: of, scope } of openaiOperations) {
      const reply = await service.send(method, path(of), { key: body.key })
      assert.deepEqual([reply.status, reply.body.error.code], [403, 'insufficient_scope'], `${method} ${of}`)
      assert.ok(reply.body.error.message.includes(requiredScope(scope!)))
    }
  })
})
