import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { tell } from './fake-model-client.ts'
import { type FakeBehaviour, type FakeModelServer, startFakeModelServer } from './fake-model-server.ts'

let server: FakeModelServer
before(async () => void (server = await startFakeModelServer()))
after(() => server.close())

const hello = { role: 'user', content: 'Hello' }
const requests = {
  'chat/completions': { model: 'fake-1', messages: [hello], stream: true, stream_options: { include_usage: true } },
  responses: { model: 'fake-1', input: [hello], stream: true },
  messages: { model: 'fake-1', max_tokens: 100, messages: [hello], stream: true },
} as const
const paths = Object.keys(requests) as (keyof typeof requests)[]

describe('the fake of model providers', () => {
  for (const path of paths) {
    it(`the fake of model providers answers at /v1/${path}`, async () => {
      const { status, events } = await tell(server, path, requests[path])
      assert.equal(status, 200)
      assert.ok(JSON.stringify(events).includes('Hello'))
    })

    it(`the fake of model providers refuses an invalid request before it does as a test says, at /v1/${path}`, async () => {
      const before = server.refused.length
      server.next({ do: 'status', status: 529 })
      const refused = await tell(server, path, { ...requests[path], nonsense: true })
      assert.equal(refused.status, 400)
      const { request, message } = server.refused[before] ?? assert.fail()
      assert.deepEqual([request.path, message], [`/v1/${path}`, refused.error?.message])
      assert.equal((await tell(server, path, requests[path])).status, 529)
      assert.equal(server.refused.length, before + 1)
    })

    it(`the fake of model providers gives each call a new id at /v1/${path}`, async () => {
      const ids = new Set<string>()
      for (let round = 0; round < 3; round++) {
        server.next({
          do: 'answer',
          tool_calls: [
            { name: 'a', arguments: {} },
            { name: 'b', arguments: {} },
          ],
        })
        const written = JSON.stringify((await tell(server, path, requests[path])).events)
        for (const [id] of written.matchAll(/(call|toolu)_\d+/g)) ids.add(id)
      }
      assert.equal(ids.size, 6)
    })
  }

  it('the fake of model providers has no other path', async () => {
    assert.equal((await fetch(`${server.base_url}/models`)).status, 404)
  })

  it('the fake of model providers counts what was cached and reasoned, in the terms of each protocol', async () => {
    const usage = {
      input_tokens: 100,
      output_tokens: 20,
      cached_tokens: 30,
      cache_write_tokens: 10,
      reasoning_tokens: 5,
    }
    const counted = async (path: (typeof paths)[number]): Promise<unknown[]> => {
      server.next({ do: 'answer', text: 'Hi', usage })
      const { events } = await tell(server, path, requests[path])
      return events.flatMap((event) => {
        const inner = (event['message'] ?? event['response'] ?? event) as { usage?: unknown }
        return inner.usage ?? []
      })
    }
    assert.deepEqual(await counted('chat/completions'), [
      {
        prompt_tokens: 100,
        completion_tokens: 20,
        total_tokens: 120,
        prompt_tokens_details: { cached_tokens: 30, cache_write_tokens: 10 },
        completion_tokens_details: { reasoning_tokens: 5 },
      },
    ])
    assert.deepEqual(await counted('messages'), [
      { input_tokens: 60, cache_read_input_tokens: 30, cache_creation_input_tokens: 10, output_tokens: 1 },
      { output_tokens: 20, output_tokens_details: { thinking_tokens: 5 } },
    ])
  })
})

type Block = Record<string, unknown> & { type: string }

describe('thinking by Messages', () => {
  const tools = [{ name: 'weather', input_schema: { type: 'object' } }]
  const thought = (): FakeBehaviour => ({
    do: 'answer',
    parts: [
      { reasoning: { text: 'First. ', redacted: ['c2VjcmV0'] } },
      { text: 'Let me see.' },
      { reasoning: { text: 'Then.' } },
      { tool_call: { name: 'weather', arguments: {} } },
    ],
  })
  const budget = { model: 'claude-sonnet-4-5', thinking: { type: 'enabled', budget_tokens: 1024 } }
  const request = (...messages: object[]) => ({ max_tokens: 4000, stream: true, tools, messages: [hello, ...messages] })

  /** The blocks of an answer as a client puts them together. */
  async function blocksOf(how: object): Promise<Block[]> {
    server.next(thought())
    const { events, error } = await tell(server, 'messages', { ...request(), ...how })
    assert.equal(error?.message, undefined)
    const blocks: Block[] = []
    for (const event of events) {
      if (event['type'] === 'content_block_start') blocks.push({ ...(event['content_block'] as Block) })
      const block = blocks[event['index'] as number]
      const { type, ...delta } = (event['delta'] ?? {}) as Record<string, string>
      if (!block || type === 'input_json_delta') continue
      for (const [name, value] of Object.entries(delta)) block[name] = `${String(block[name])}${value}`
    }
    return blocks
  }

  it('thinking by Messages comes in its place where the request lets the model think, and nowhere else', async () => {
    const types = ['thinking', 'redacted_thinking', 'text', 'thinking', 'tool_use']
    const blocks = await blocksOf(budget)
    assert.deepEqual(
      blocks.map(({ type }) => type),
      types,
    )
    assert.deepEqual([blocks[0]?.['thinking'], blocks[1]?.['data']], ['First. ', 'c2VjcmV0'])
    assert.deepEqual(
      (await blocksOf({ model: 'claude-sonnet-4-5' })).map(({ type }) => type),
      ['text', 'tool_use'],
    )
  })

  it('thinking by Messages has no text where the model leaves it out unless it is asked for', async () => {
    const model = 'fake-reasoner'
    assert.equal((await blocksOf({ model, thinking: { type: 'adaptive' } }))[0]?.['thinking'], '')
    const shown = await blocksOf({ model, thinking: { type: 'adaptive', display: 'summarized' } })
    assert.equal(shown[0]?.['thinking'], 'First. ')
  })

  it('thinking by Messages comes back as it was, and is refused where it is missing, changed, moved, or was never produced', async () => {
    const [first, hidden, said, then, call] = (await blocksOf(budget)) as [Block, Block, Block, Block, Block]
    const id = call['id']
    const asks = async (content: object[], how: object = budget) => {
      const messages = [
        { role: 'assistant', content },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: id, content: 'rain' }] },
      ]
      return (await tell(server, 'messages', { ...request(...messages), ...how })).error?.message
    }
    assert.equal(await asks([first, hidden, said, then, call]), undefined)
    // Without thinking, none of it is looked for.
    assert.equal(await asks([said, call], { model: 'claude-sonnet-4-5' }), undefined)

    const expected =
      'messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`. When `thinking` is enabled, a final `assistant` message must start with a thinking block'
    assert.ok((await asks([call]))?.startsWith(expected))
    assert.ok((await asks([call], { model: 'claude-opus-4-8', thinking: { type: 'adaptive' } }))?.startsWith(expected))
    assert.equal(await asks([call], { model: 'claude-opus-4-8' }), undefined)

    const modified =
      '`thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified. These blocks must remain as they were in the original response.'
    assert.equal(
      await asks([{ ...first, thinking: 'First.' }, hidden, said, then, call]),
      `messages.1.content.0: ${modified}`,
    )
    assert.equal(await asks([first, said, then, call]), `messages.1.content.0: ${modified}`)
    assert.equal(await asks([first, then, hidden, said, call]), `messages.1.content.0: ${modified}`)
    assert.equal(
      await asks([{ ...first, signature: 'x' }, hidden, said, then, call]),
      'messages.1.content.0: Invalid `signature` in `thinking` block',
    )
    assert.equal(
      await asks([first, { ...hidden, data: 'x' }, said, then, call]),
      'messages.1.content.1: Invalid `data` in `redacted_thinking` block',
    )
  })

  it('thinking by Messages is asked for before a call of another provider only by a budget, since adaptive thinking may leave it out', async () => {
    const foreign = [
      { role: 'assistant', content: [{ type: 'tool_use', id: 'call_foreign', name: 'weather', input: {} }] },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'call_foreign', content: 'rain' }] },
    ]
    const received = await tell(server, 'messages', { ...request(...foreign), ...budget })
    assert.match(received.error?.message ?? '', /^messages\.1\.content\.0\.type: Expected `thinking`/)
    const adaptive = { model: 'claude-opus-4-8', thinking: { type: 'adaptive' } }
    assert.equal((await tell(server, 'messages', { ...request(...foreign), ...adaptive })).status, 200)
  })
})
