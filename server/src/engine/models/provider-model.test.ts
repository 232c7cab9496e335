import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { afterEach, beforeEach, describe, it } from 'node:test'
import { promisify } from 'node:util'
import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib'
import { startByteCounter } from '../../../test/fakes/byte-counter.ts'
import {
  type FakeBehaviour,
  type FakeModelServer,
  startFakeModelServer,
} from '../../../test/fake-models/fake-model-server.ts'
import { startLocalServer } from '../../../test/fakes/local-server.ts'
import { modelRequest } from '../../../test/fake-models/model-request.ts'
import {
  failsWith,
  makeModel,
  protocolOf,
  providerKey,
  providerKinds,
} from '../../../test/fake-models/provider-under-test.ts'
import type { ModelRequest } from './model.ts'
import type { CallLimits } from './model-watch.ts'

let server: FakeModelServer
beforeEach(async () => {
  server = await startFakeModelServer()
})
afterEach(() => server.close())

const ask = (more: Partial<ModelRequest> = {}): ModelRequest =>
  modelRequest('Hello?', { system_prompt: 'Be short.', ...more })

const weather = {
  name: 'shop/weather.now',
  description: 'The weather.',
  parameters: { type: 'object', properties: { city: { type: 'string' } } },
}

for (const kind of providerKinds) {
  describe(`a model of kind ${kind}`, () => {
    it(`a model of kind ${kind} answers in pieces, in order, and with the usage of the provider`, async () => {
      const text = 'A first line.\nThen a second — with “signs” 👩‍🚀 and more.'
      server.next({
        do: 'answer',
        text,
        usage: { input_tokens: 30, output_tokens: 12, cached_tokens: 20 },
        model: 'fake-1-2026',
      })
      const pieces: string[] = []
      const { network, ...answer } = await makeModel(kind, server.base_url).call(
        ask({ on_delta: (piece) => void pieces.push(piece) }),
      )
      assert.deepEqual(answer, {
        text,
        tool_calls: [],
        finish_reason: 'stop',
        model: 'fake-1-2026',
        usage: { input_tokens: 30, output_tokens: 12, cached_tokens: 20 },
      })
      assert.ok(pieces.length > 5)
      assert.equal(pieces.join(''), text)
      assert.ok(network.bytes_in > text.length && network.bytes_out > 100)
    })

    for (const [finish_reason, expected] of [
      ['length', 'length'],
      ['content_filter', 'content_filter'],
    ] as const) {
      it(`a model of kind ${kind} reports the end as ${expected}`, async () => {
        server.next({ do: 'answer', text: 'cut', finish_reason })
        assert.equal((await makeModel(kind, server.base_url).call(ask())).finish_reason, expected)
      })
    }

    it(`a model of kind ${kind} asks for tools by our names, with arguments parsed where they are JSON and as text where they are not`, async () => {
      const connection = 'shop_weather_now'
      server.next({
        do: 'answer',
        text: 'Let me see.',
        tool_calls: [
          { id: 'a', name: connection, arguments: { city: 'Köln', deep: { n: [1, null] } } },
          { id: 'b', name: connection, arguments: '' },
          { id: 'c', name: connection, arguments: '{"city": "K' },
          { id: 'd', name: 'unknown_tool', arguments: {} },
        ],
      })
      const answer = await makeModel(kind, server.base_url).call(ask({ tools: [weather] }))
      assert.equal(answer.text, 'Let me see.')
      assert.equal(answer.finish_reason, 'tool_calls')
      assert.deepEqual(answer.tool_calls, [
        { id: 'a', name: 'shop/weather.now', arguments: { city: 'Köln', deep: { n: [1, null] } } },
        { id: 'b', name: 'shop/weather.now', arguments: {} },
        { id: 'c', name: 'shop/weather.now', arguments: '{"city": "K' },
        { id: 'd', name: 'unknown_tool', arguments: {} },
      ])
    })

    it(`a model of kind ${kind} sends the whole conversation once, with the key, and nothing that was not set`, async () => {
      await makeModel(kind, server.base_url).call(
        ask({
          tools: [weather],
          temperature: 0.5,
          max_tokens: 50,
          messages: [
            { role: 'user', content: 'Weather?' },
            {
              role: 'assistant',
              content: '',
              tool_calls: [
                { id: 'call_1', name: 'shop/weather.now', arguments: { city: 'Bonn' } },
                { id: 'call_2', name: 'shop/weather.now', arguments: 'not json' },
              ],
            },
            { role: 'tool', content: 'rain', tool_call_id: 'call_1', tool_name: 'shop/weather.now' },
            { role: 'tool', content: 'bad arguments', tool_call_id: 'call_2', tool_name: 'shop/weather.now' },
            { role: 'assistant', content: '' },
            { role: 'system', content: 'Answer in German.' },
            { role: 'user', content: 'And?' },
          ],
        }),
      )
      assert.equal(server.requests.length, 1)
      const { body, headers } = server.requests[0] ?? assert.fail()
      assert.deepEqual(readSent[protocolOf(kind)](body), {
        model: 'fake-1',
        stream: true,
        temperature: 0.5,
        max_tokens: 50,
        system: 'Be short.\n\nAnswer in German.',
        tools: ['shop_weather_now'],
        messages: [
          'user Weather?',
          'calls call_1 {"city":"Bonn"} call_2 {"invalid_arguments":"not json"}',
          'result call_1 rain',
          'result call_2 bad arguments',
          'user And?',
        ],
      })
      assert.equal(
        kind === 'anthropic' ? headers['x-api-key'] : headers.authorization,
        kind === 'anthropic' ? providerKey : `Bearer ${providerKey}`,
      )

      await makeModel(kind, server.base_url).call(ask({ system_prompt: undefined }))
      const bare = server.requests[1]?.body ?? assert.fail()
      assert.ok(
        !('temperature' in bare) && !('tools' in bare) && !JSON.stringify(bare).includes('system'),
        JSON.stringify(bare),
      )
    })

    it(`a model of kind ${kind} continues a conversation with an answer of white space, with and without tool calls`, async () => {
      const blank = '\n\n'
      await makeModel(kind, server.base_url).call(
        ask({
          system_prompt: ' ',
          tools: [weather],
          messages: [
            { role: 'user', content: 'Weather?' },
            {
              role: 'assistant',
              content: blank,
              tool_calls: [{ id: 'call_1', name: 'shop/weather.now', arguments: {} }],
            },
            { role: 'tool', content: 'rain', tool_call_id: 'call_1', tool_name: 'shop/weather.now' },
            { role: 'assistant', content: blank },
            {
              role: 'user',
              content: 'And?',
              parts: [
                { type: 'text', text: ' ' },
                { type: 'text', text: 'And?' },
              ],
            },
          ],
        }),
      )
      assert.deepEqual(server.refused, [])
    })

    it(`a model of kind ${kind} disables parallel tool calls if the request says so and has tools`, async () => {
      const member = kind === 'anthropic' ? 'tool_choice' : 'parallel_tool_calls'
      const asked = async (more: Partial<ModelRequest>): Promise<unknown> => {
        await makeModel(kind, server.base_url).call(ask(more))
        return server.requests.at(-1)!.body[member]
      }
      const one = kind === 'anthropic' ? { type: 'auto', disable_parallel_tool_use: true } : false
      assert.deepEqual(await asked({ tools: [weather], parallel_tool_calls: false }), one)
      assert.notDeepEqual(await asked({ tools: [weather] }), one)
      assert.equal(await asked({ parallel_tool_calls: false }), undefined)
    })

    it(`a call of a model of kind ${kind} times out without a first byte, without a next one, and in total`, async () => {
      const cases: [FakeBehaviour, Partial<CallLimits>, RegExp][] = [
        [{ do: 'stall', pieces: 0 }, { start_ms: 300 }, /No answer began/],
        [{ do: 'stall', pieces: 4, text: 'a b c' }, { idle_ms: 300 }, /paused for more than/],
        [{ do: 'stall', pieces: 4, text: 'a b c' }, { total_ms: 400, idle_ms: 5000 }, /took longer/],
      ]
      for (const [behaviour, limits, message] of cases) {
        server.next(behaviour)
        await assert.rejects(
          makeModel(kind, server.base_url, limits).call(ask()),
          failsWith('provider_timeout', true, (error) => message.test(error.message)),
        )
      }
    })

    it(`a call of a model of kind ${kind} ends with the reason of its signal and closes the connection`, async () => {
      const reason = new Error('the agent was stopped')
      const model = makeModel(kind, server.base_url)
      for (const behaviour of [
        { do: 'stall', pieces: 0 },
        { do: 'stall', pieces: 5, text: 'a b c' },
      ] satisfies FakeBehaviour[]) {
        const stop = new AbortController()
        server.next(behaviour)
        const seen = server.requests.length + 1
        const call = model.call(ask({ signal: stop.signal, on_delta: () => stop.abort(reason) }))
        void server.waitForRequests(seen).then(() => behaviour.pieces === 0 && stop.abort(reason))
        await assert.rejects(call, reason)
      }
      while ((await server.connections()) > 0) await new Promise(setImmediate)
      await assert.rejects(model.call(ask({ signal: AbortSignal.abort(reason) })), reason)
      assert.equal(server.requests.length, 2)
    })

    it(`a model of kind ${kind} refuses an answer of more text than 4 Mi characters, and one of a single line without end`, async (t) => {
      server.next({ do: 'answer', text: `${'x'.repeat(64 * 1024)} `.repeat(80) })
      await assert.rejects(
        makeModel(kind, server.base_url).call(ask()),
        failsWith('provider_bad_answer', false, ({ message }) => message.includes('longer than')),
      )
      const endless = await startLocalServer(t, (_request, response) => {
        const more = (): void =>
          void (response.destroyed || response.write('data: '.padEnd(64 * 1024, 'x'), () => setImmediate(more)))
        response.setHeader('content-type', 'text/event-stream')
        more()
      })
      const model = makeModel(kind, `${endless.url}/v1`, { bytesMax: 1_000_000, idle_ms: 20 })
      await assert.rejects(
        model.call(ask()),
        failsWith('provider_bad_answer', false, ({ message }) => message.includes('exceeds 1000000 bytes')),
      )
    })

    it(`a model of kind ${kind} counts every byte, and keeps the connection between calls`, async (t) => {
      const counter = await startByteCounter(t, Number(new URL(server.base_url).port))
      const model = makeModel(kind, `http://127.0.0.1:${counter.port}/v1`)
      const first = await model.call(ask())
      const second = await model.call(ask({ messages: [{ role: 'user', content: 'x'.repeat(10_000) }] }))
      assert.deepEqual(
        {
          bytes_in: first.network.bytes_in + second.network.bytes_in,
          bytes_out: first.network.bytes_out + second.network.bytes_out,
        },
        counter.seen,
      )
      assert.ok(second.network.bytes_out > first.network.bytes_out + 9000)
      assert.equal(counter.connections(), 1)
    })

    it(`concurrent calls of a model of kind ${kind} have a connection each and count their own bytes`, async () => {
      const model = makeModel(kind, server.base_url)
      const small = ask()
      const large = ask({ messages: [{ role: 'user', content: 'x'.repeat(100_000) }] })
      const alone = await model.call(small)
      const answers = await Promise.all([model.call(small), model.call(large), model.call(small)])
      assert.deepEqual(
        answers.map(({ network }) => network.bytes_out > 100_000),
        [false, true, false],
      )
      assert.deepEqual([answers[0]?.network, answers[2]?.network], [alone.network, alone.network])
    })
  })
}

it('a compressed response is read although no compression was requested', async (t) => {
  const lines = [
    { choices: [{ index: 0, delta: { role: 'assistant', content: 'Grüße ' } }] },
    { choices: [{ index: 0, delta: { content: 'in pieces' } }] },
    { choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] },
  ]
  const stream = `${lines.map((line) => `data: ${JSON.stringify(line)}\n\n`).join('')}data: [DONE]\n\n`
  const encodings = { gzip: gzipSync, deflate: deflateSync, br: brotliCompressSync, zstd: zstdCompressSync }
  for (const [encoding, compress] of Object.entries(encodings)) {
    const { url } = await startLocalServer(t, (request, response) => {
      assert.equal(request.headers['accept-encoding'], 'identity')
      response.writeHead(200, { 'content-type': 'text/event-stream', 'content-encoding': encoding })
      response.end(compress(stream))
    })
    const { text } = await makeModel('openai_compatible', `${url}/v1`).call(ask())
    assert.equal(text, 'Grüße in pieces', encoding)
  }
})

for (const kind of providerKinds) {
  it(`a compressed answer of kind ${kind} that unpacks to far more than it sends ends at the bound of uncompressed answers`, async (t) => {
    const answers = {
      'exceeds 67108864 bytes': `: ${'x'.repeat(1024 * 1024)}\n\n`.repeat(65),
      'longer than 8388608 characters': `data: ${'x'.repeat(9 * 1024 * 1024)}`,
    }
    for (const [message, answer] of Object.entries(answers)) {
      const { url } = await startLocalServer(t, (_request, response) => {
        response.writeHead(200, { 'content-type': 'text/event-stream', 'content-encoding': 'gzip' })
        response.end(gzipSync(answer, { level: 1 }))
      })
      await assert.rejects(
        makeModel(kind, `${url}/v1`).call(ask()),
        failsWith('provider_bad_answer', false, (error) => error.message.includes(message)),
      )
    }
  })
}

it('a server that counts no tokens has a usage of zero', async () => {
  server.next({ do: 'answer', text: 'Hi', usage: null })
  assert.deepEqual((await makeModel('openai_compatible', server.base_url).call(ask())).usage, {
    input_tokens: 0,
    output_tokens: 0,
    cached_tokens: 0,
  })
})

it('calls take no proxy from the environment, and the libraries are loaded by the first of them', async (t) => {
  const proxy = await startLocalServer(t)
  const env = {
    ...process.env,
    NODE_USE_ENV_PROXY: '1',
    HTTP_PROXY: proxy.url,
    http_proxy: proxy.url,
    HTTPS_PROXY: proxy.url,
    NO_PROXY: '',
  }
  const script = `
    import { registerHooks } from 'node:module'
    const loaded = []
    registerHooks({ resolve: (name, context, next) => (/^(@ai-sdk|undici|ai$)/.test(name) && loaded.push(name), next(name, context)) })
    const { makeModels } = await import(${JSON.stringify(new URL('./models.ts', import.meta.url).href)})
    const models = makeModels({ openai: { base_url: ${JSON.stringify(server.base_url)} }, default_model: 'x' })
    const { model, name } = models.resolve('fake-1')
    const before = loaded.length
    const answer = await model.call({ model: name, messages: [{ role: 'user', content: 'Hi' }], tools: [], signal: new AbortController().signal })
    console.log(JSON.stringify([before, loaded.length > 0, answer.text]))`
  const { stdout, stderr } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', script], { env })
  assert.deepEqual(JSON.parse(stdout), [0, true, 'Hello from the fake model.'])
  assert.equal(stderr, '')
  assert.equal(proxy.connections(), 0)
})

const readSent = { responses: readResponses, chat: readOpenai, messages: readAnthropic }

interface ResponsesBody {
  input: { role?: string; type?: string; content: any; call_id: string; arguments: string; output: string }[]
  tools?: { name: string }[]
}

function readResponses(sent: Record<string, unknown>): object {
  const { input, tools = [] } = sent as unknown as ResponsesBody
  const lines: string[] = []
  const calls = input.filter(({ type }) => type === 'function_call')
  for (const item of input.slice(1)) {
    if (item.type === 'function_call_output') lines.push(`result ${item.call_id} ${item.output}`)
    else if (item.role === 'user') lines.push(`user ${item.content[0].text}`)
    else if (item === calls[0])
      lines.push(`calls ${calls.map(({ call_id, arguments: given }) => `${call_id} ${given}`).join(' ')}`)
  }
  return {
    model: sent['model'],
    stream: sent['stream'],
    temperature: sent['temperature'],
    max_tokens: sent['max_output_tokens'],
    system: input[0]?.content,
    tools: tools.map(({ name }) => name),
    messages: lines,
  }
}

interface OpenaiBody {
  messages: {
    role: string
    content: string
    tool_call_id?: string
    tool_calls?: { id: string; function: { name: string; arguments: string } }[]
  }[]
  tools?: { function: { name: string } }[]
}

function readOpenai(sent: Record<string, unknown>): object {
  const { messages, tools = [] } = sent as unknown as OpenaiBody
  const lines = messages.map(({ role, content, tool_call_id, tool_calls = [] }) => {
    if (role === 'tool') return `result ${tool_call_id} ${content}`
    if (role === 'user') return `user ${content}`
    return `calls ${tool_calls.map((call) => `${call.id} ${call.function.arguments}`).join(' ')}`
  })
  return {
    model: sent['model'],
    stream: sent['stream'],
    temperature: sent['temperature'],
    max_tokens: sent['max_tokens'],
    system: messages[0]?.content,
    tools: tools.map((tool) => tool.function.name),
    messages: lines.slice(1),
  }
}

interface AnthropicBody {
  system: { text: string }[]
  messages: {
    role: string
    content: { type: string; text: string; id: string; input: object; tool_use_id: string; content: string }[]
  }[]
  tools?: { name: string }[]
}

function readAnthropic(sent: Record<string, unknown>): object {
  const { system, messages, tools = [] } = sent as unknown as AnthropicBody
  const lines = messages.flatMap(({ role, content }) => {
    if (role === 'assistant') {
      return [`calls ${content.map(({ id, input }) => `${id} ${JSON.stringify(input)}`).join(' ')}`]
    }
    return content.map((part) =>
      part.type === 'text' ? `user ${part.text}` : `result ${part.tool_use_id} ${part.content}`,
    )
  })
  return {
    model: sent['model'],
    stream: sent['stream'],
    temperature: sent['temperature'],
    max_tokens: sent['max_tokens'],
    system: system.map(({ text }) => text).join(''),
    tools: tools.map(({ name }) => name),
    messages: lines,
  }
}
