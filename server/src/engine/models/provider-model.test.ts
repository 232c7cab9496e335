import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { type AddressInfo, connect, createServer } from 'node:net'
import { after, afterEach, beforeEach, describe, it, type TestContext } from 'node:test'
import { promisify } from 'node:util'
import { type FakeBehaviour, type FakeModelServer, startFakeModelServer } from '../../../test/fake-model-server.ts'
import { startLocalServer } from '../../../test/local-server.ts'
import { type Model, ModelError, type ModelErrorCode, type ModelRequest } from './model.ts'
import { type CallLimits, callLimits } from './model-watch.ts'
import { makeModelWires } from './model-wires.ts'
import { makeProviderModel } from './provider-model.ts'
import type { ProviderKind } from './providers.ts'

/** The end of the process in production: nothing that a provider does may cause one. */
const unhandled: unknown[] = []
process.on('unhandledRejection', (reason) => unhandled.push(reason))
after(() => assert.deepEqual(unhandled, []))

let server: FakeModelServer
beforeEach(async () => {
  server = await startFakeModelServer()
})
afterEach(() => server.close())

const key = 'sk-fake-0123456789'

function makeModel(kind: ProviderKind, options: Partial<CallLimits> & { base_url?: string } = {}): Model {
  const { base_url = server.base_url, ...limits } = options
  return makeProviderModel({ name: kind, kind, base_url, api_key: key }, { wires: makeModelWires(), limits: { ...callLimits, ...limits } })
}

function ask(more: Partial<ModelRequest> = {}): ModelRequest {
  return {
    model: 'fake-1',
    system_prompt: 'Be short.',
    messages: [{ role: 'user', content: 'Hello?' }],
    tools: [],
    temperature: undefined,
    max_tokens: undefined,
    signal: new AbortController().signal,
    ...more,
  }
}

const weather = { name: 'shop/weather.now', description: 'The weather.', parameters: { type: 'object', properties: { city: { type: 'string' } } } }
const fails = (code: ModelErrorCode, retryable: boolean, more: (error: ModelError) => boolean = () => true) => (error: unknown) => {
  assert.ok(error instanceof ModelError, String(error))
  assert.deepEqual([error.code, error.retryable], [code, retryable], error.message)
  assert.ok(more(error), `${error.message} ${error.retry_after}`)
  return true
}

const kinds: ProviderKind[] = ['openai', 'openai_compatible', 'anthropic']
for (const kind of kinds) {
  describe(`a model of kind ${kind}`, () => {
    it('answers in pieces, in order, and with what the provider counted', async () => {
      const text = 'A first line.\nThen a second — with “signs” 👩‍🚀 and more.'
      server.next({ do: 'answer', text, usage: { input_tokens: 30, output_tokens: 12, cached_tokens: 20 }, model: 'fake-1-2026' })
      const pieces: string[] = []
      const { network, ...answer } = await makeModel(kind).call(ask({ on_delta: (piece) => void pieces.push(piece) }))
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

    for (const [finish_reason, expected] of [['length', 'length'], ['content_filter', 'content_filter']] as const) {
      it(`says that it stopped for ${expected}`, async () => {
        server.next({ do: 'answer', text: 'cut', finish_reason })
        assert.equal((await makeModel(kind).call(ask())).finish_reason, expected)
      })
    }

    it('asks for tools by our names, with arguments parsed where they are JSON and as text where they are not', async () => {
      const wire = 'shop_weather_now'
      server.next({ do: 'answer', text: 'Let me see.', tool_calls: [
        { id: 'a', name: wire, arguments: { city: 'Köln', deep: { n: [1, null] } } },
        { id: 'b', name: wire, arguments: '' },
        { id: 'c', name: wire, arguments: '{"city": "K' },
        { id: 'd', name: 'unknown_tool', arguments: {} },
      ] })
      const answer = await makeModel(kind).call(ask({ tools: [weather] }))
      assert.equal(answer.text, 'Let me see.')
      assert.equal(answer.finish_reason, 'tool_calls')
      assert.deepEqual(answer.tool_calls, [
        { id: 'a', name: 'shop/weather.now', arguments: { city: 'Köln', deep: { n: [1, null] } } },
        { id: 'b', name: 'shop/weather.now', arguments: {} },
        { id: 'c', name: 'shop/weather.now', arguments: '{"city": "K' },
        { id: 'd', name: 'unknown_tool', arguments: {} },
      ])
    })

    it('sends the whole conversation once, with the key, and nothing that was not set', async () => {
      await makeModel(kind).call(ask({ tools: [weather], temperature: 0.5, max_tokens: 50, messages: [
        { role: 'user', content: 'Weather?' },
        { role: 'assistant', content: '', tool_calls: [
          { id: 'call_1', name: 'shop/weather.now', arguments: { city: 'Bonn' } },
          { id: 'call_2', name: 'shop/weather.now', arguments: 'not json' },
        ] },
        { role: 'tool', content: 'rain', tool_call_id: 'call_1', tool_name: 'shop/weather.now' },
        { role: 'tool', content: 'bad arguments', tool_call_id: 'call_2', tool_name: 'shop/weather.now' },
        { role: 'assistant', content: '' },
        { role: 'system', content: 'Answer in German.' },
        { role: 'user', content: 'And?' },
      ] }))
      assert.equal(server.requests.length, 1)
      const { body, headers } = server.requests[0] ?? assert.fail()
      assert.deepEqual(kind === 'anthropic' ? readAnthropic(body) : readOpenai(body), {
        model: 'fake-1', stream: true, temperature: 0.5, max_tokens: 50, system: 'Be short.\n\nAnswer in German.', tools: ['shop_weather_now'],
        messages: ['user Weather?', 'calls call_1 {"city":"Bonn"} call_2 {"invalid_arguments":"not json"}', 'result call_1 rain', 'result call_2 bad arguments', 'user And?'],
      })
      assert.equal(kind === 'anthropic' ? headers['x-api-key'] : headers.authorization, kind === 'anthropic' ? key : `Bearer ${key}`)

      await makeModel(kind).call(ask({ system_prompt: undefined }))
      const bare = server.requests[1]?.body ?? assert.fail()
      assert.ok(!('temperature' in bare) && !('tools' in bare) && !JSON.stringify(bare).includes('system'), JSON.stringify(bare))
    })

    const statuses: [number, ModelErrorCode, boolean][] = [
      [400, 'provider_refused_request', false], [401, 'provider_credentials_refused', false], [403, 'provider_credentials_refused', false],
      [404, 'model_not_found', false], [408, 'provider_timeout', true], [413, 'provider_refused_request', false],
      [422, 'provider_refused_request', false], [429, 'provider_rate_limited', true], [500, 'provider_unavailable', true],
      [502, 'provider_unavailable', true], [503, 'provider_unavailable', true], [504, 'provider_timeout', true], [529, 'provider_unavailable', true],
      [301, 'provider_bad_answer', false],
    ]
    for (const [status, code, retryable] of statuses) {
      it(`turns status ${status} into ${code}, asks once, and says what the provider said`, async () => {
        server.next({ do: 'status', status, message: `because of ${status}`, headers: { location: '/elsewhere' } })
        const said = (error: ModelError): boolean => status === 301 || error.message.includes(`because of ${status}`)
        await assert.rejects(makeModel(kind).call(ask()), fails(code, retryable, (error) => said(error) && error.network.bytes_in > 0))
        assert.equal(server.requests.length, 1)
      })
    }

    for (const body of ['', 'upstream connect error', '{"detail": "nope"}', '{"error": "just words"}', '<html>Bad Gateway</html>', '[]', 'null']) {
      it(`understands a status whose body is ${body || 'empty'}`, async () => {
        server.next({ do: 'status', status: 502, body })
        await assert.rejects(makeModel(kind).call(ask()), fails('provider_unavailable', true, ({ message }) => message.includes('502')))
      })
    }

    const waits: [Record<string, string>, (seconds: number | undefined) => boolean][] = [
      [{}, (seconds) => seconds === undefined],
      [{ 'retry-after': '7' }, (seconds) => seconds === 7],
      [{ 'retry-after': '7', 'retry-after-ms': '250' }, (seconds) => seconds === 0.25],
      [{ 'retry-after': new Date(Date.now() + 60_000).toUTCString() }, (seconds) => seconds !== undefined && seconds > 55 && seconds <= 60],
      [{ 'retry-after': new Date(Date.now() - 60_000).toUTCString() }, (seconds) => seconds === 0],
      [{ 'retry-after': 'soon' }, (seconds) => seconds === undefined],
    ]
    for (const [headers, expected] of waits) {
      it(`passes on how long to wait: ${JSON.stringify(headers)}`, async () => {
        server.next({ do: 'status', status: 429, headers }, { do: 'status', status: 503, headers })
        await assert.rejects(makeModel(kind).call(ask()), fails('provider_rate_limited', true, ({ retry_after }) => expected(retry_after)))
        await assert.rejects(makeModel(kind).call(ask()), fails('provider_unavailable', true, ({ retry_after }) => expected(retry_after)))
      })
    }

    const broken: [string, FakeBehaviour, ModelErrorCode, boolean][] = [
      ['resets the connection', { do: 'reset' }, 'provider_unavailable', true],
      ['cuts the connection after three pieces', { do: 'cut', pieces: 3, text: 'a b c d' }, 'provider_unavailable', true],
      ['ends without saying that it is finished', { do: 'end_early', pieces: 4, text: 'a b c d' }, 'provider_unavailable', true],
      ['ends in the middle of a tool call', { do: 'end_early', pieces: 3, tool_calls: [{ name: 'x', arguments: { a: 1 } }] }, 'provider_unavailable', true],
      ['sends nothing at all', { do: 'raw', body: '' }, 'provider_unavailable', true],
      ['sends a stream that is not JSON', { do: 'raw', body: 'data: {"choices": [\n\ndata: oops\n\n' }, 'provider_bad_answer', true],
      ['sends JSON of another shape', { do: 'raw', body: 'data: {"type":"message_start","choices":"none"}\n\n' }, 'provider_bad_answer', true],
      ['sends rubbish as a stream', { do: 'raw', body: '\0\xff\xfe}{'.repeat(100) }, 'provider_unavailable', true],
      ['sends a page', { do: 'raw', body: '<html>Hello</html>', content_type: 'text/html' }, 'provider_bad_answer', false],
      ['sends JSON without a stream', { do: 'raw', body: '{"choices": []}', content_type: 'application/json' }, 'provider_bad_answer', false],
      ['complains with status 200', { do: 'raw', body: '{"error":{"message":"slow down","type":"rate_limit_error","code":"rate_limit_exceeded"}}', content_type: 'application/json' }, 'provider_rate_limited', true],
      ['complains about the key with status 200', { do: 'raw', body: '{"error":{"message":"bad key","type":"authentication_error"}}', content_type: 'application/json' }, 'provider_credentials_refused', false],
      ['complains with status 200 in words only', { do: 'raw', body: '{"error":"out of memory"}', content_type: 'application/json' }, 'provider_unavailable', true],
      ['complains at the start of the stream', { do: 'error_event', pieces: 0, error: { type: 'overloaded_error', message: 'overloaded', code: 'overloaded' } }, 'provider_unavailable', true],
      ['complains in the middle of the stream', { do: 'error_event', pieces: 4, text: 'a b c', error: { type: 'server_error', message: 'it broke', code: null } }, 'provider_unavailable', true],
      ['finds the limit in the middle of the stream', { do: 'error_event', pieces: 4, text: 'a b c', error: { type: 'rate_limit_error', message: 'too fast', code: 'rate_limit_exceeded' } }, 'provider_rate_limited', true],
      ['refuses the key in the middle of the stream', { do: 'error_event', pieces: 4, text: 'a b c', error: { type: 'authentication_error', message: 'revoked', code: 'invalid_api_key' } }, 'provider_credentials_refused', false],
    ]
    for (const [what, behaviour, code, retryable] of broken) {
      it(`fails with ${code} when the provider ${what}, and works again after that`, async () => {
        server.next(behaviour)
        const model = makeModel(kind)
        await assert.rejects(model.call(ask()), fails(code, retryable, ({ network }) => network.bytes_out > 0))
        assert.equal((await model.call(ask())).text, 'Hello from the fake model.')
        assert.equal(server.requests.length, 2)
      })
    }

    it('does not repeat the key, whoever says it', async () => {
      server.next({ do: 'status', status: 401, message: `Incorrect API key provided: ${key}.` })
      await assert.rejects(makeModel(kind).call(ask()), fails('provider_credentials_refused', false, (error) => {
        const told = JSON.stringify([error.message, error.stack, error.cause])
        return !told.includes(key) && error.message.includes('[redacted]')
      }))
    })

    it('says that nobody is there', async () => {
      const gone = await startFakeModelServer()
      await gone.close()
      await assert.rejects(makeModel(kind, { base_url: gone.base_url }).call(ask()), fails('provider_unavailable', true, ({ message }) => message.includes('ECONNREFUSED')))
      await assert.rejects(makeModel(kind, { base_url: 'http://nobody.invalid/v1' }).call(ask()), fails('provider_unavailable', true))
    })

    it('ends when the provider never begins to answer, or stops in the middle, or takes too long on the whole', async () => {
      const cases: [FakeBehaviour, Partial<CallLimits>, RegExp][] = [
        [{ do: 'stall', pieces: 0 }, { start_ms: 40 }, /No answer began/],
        [{ do: 'stall', pieces: 4, text: 'a b c' }, { idle_ms: 40 }, /stopped for/],
        [{ do: 'stall', pieces: 4, text: 'a b c' }, { total_ms: 40, idle_ms: 200 }, /took longer/],
      ]
      for (const [behaviour, limits, message] of cases) {
        server.next(behaviour)
        await assert.rejects(makeModel(kind, limits).call(ask()), fails('provider_timeout', true, (error) => message.test(error.message)))
      }
    })

    it('is stopped by its signal with the reason of that signal, and lets go of the connection', async () => {
      const reason = new Error('the agent was stopped')
      const model = makeModel(kind)
      for (const behaviour of [{ do: 'stall', pieces: 0 }, { do: 'stall', pieces: 5, text: 'a b c' }] satisfies FakeBehaviour[]) {
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

    it('refuses an answer of more text than 4 Mi characters, and one of a single line without end', async (t) => {
      server.next({ do: 'answer', text: `${'x'.repeat(64 * 1024)} `.repeat(80) })
      await assert.rejects(makeModel(kind).call(ask()), fails('provider_bad_answer', false, ({ message }) => message.includes('longer than')))
      const endless = await startLocalServer(t, (_request, response) => {
        const more = (): void => void (response.destroyed || response.write('data: '.padEnd(64 * 1024, 'x'), () => setImmediate(more)))
        response.setHeader('content-type', 'text/event-stream')
        more()
      })
      const model = makeModel(kind, { base_url: `${endless.url}/v1`, bytesMax: 1_000_000, idle_ms: 20 })
      await assert.rejects(model.call(ask()), fails('provider_bad_answer', false, ({ message }) => message.includes('exceeds 1000000 bytes')))
    })

    it('counts every byte, and keeps the connection between calls', async (t) => {
      const counter = await startCounter(t, Number(new URL(server.base_url).port))
      const model = makeModel(kind, { base_url: `http://127.0.0.1:${counter.port}/v1` })
      const first = await model.call(ask())
      const second = await model.call(ask({ messages: [{ role: 'user', content: 'x'.repeat(10_000) }] }))
      assert.deepEqual(
        { bytes_in: first.network.bytes_in + second.network.bytes_in, bytes_out: first.network.bytes_out + second.network.bytes_out },
        counter.seen,
      )
      assert.ok(second.network.bytes_out > first.network.bytes_out + 9000)
      assert.equal(counter.connections(), 1)
    })

    it('gives calls at the same time a connection each, and each its own bytes', async () => {
      const model = makeModel(kind)
      const small = ask()
      const large = ask({ messages: [{ role: 'user', content: 'x'.repeat(100_000) }] })
      const alone = await model.call(small)
      const answers = await Promise.all([model.call(small), model.call(large), model.call(small)])
      assert.deepEqual(answers.map(({ network }) => network.bytes_out > 100_000), [false, true, false])
      assert.deepEqual([answers[0]?.network, answers[2]?.network], [alone.network, alone.network])
    })
  })
}

it('a model with a spent quota is not asked again', async () => {
  server.next({ do: 'status', status: 429, message: 'You exceeded your quota.', code: 'insufficient_quota' })
  await assert.rejects(makeModel('openai').call(ask()), fails('provider_rate_limited', false))
})

it('a server that counts no tokens is believed to have used none', async () => {
  server.next({ do: 'answer', text: 'Hi', usage: null })
  assert.deepEqual((await makeModel('openai_compatible').call(ask())).usage, { input_tokens: 0, output_tokens: 0, cached_tokens: 0 })
})

it('calls take no proxy from the environment, and the libraries are loaded by the first of them', async (t) => {
  const proxy = await startLocalServer(t)
  const env = { ...process.env, NODE_USE_ENV_PROXY: '1', HTTP_PROXY: proxy.url, http_proxy: proxy.url, HTTPS_PROXY: proxy.url, NO_PROXY: '' }
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

/** Passes connections on to `port` and counts what crosses, as the network sees it. */
async function startCounter(t: TestContext, port: number) {
  const seen = { bytes_in: 0, bytes_out: 0 }
  let connections = 0
  const front = createServer((socket) => {
    connections++
    const inner = connect(port, '127.0.0.1')
    socket.on('data', (chunk) => void (seen.bytes_out += chunk.length)).on('error', () => {})
    inner.on('data', (chunk) => void (seen.bytes_in += chunk.length)).on('error', () => {})
    socket.pipe(inner).pipe(socket)
  }).listen(0, '127.0.0.1')
  await once(front, 'listening')
  t.after(() => void front.close())
  return { port: (front.address() as AddressInfo).port, seen, connections: () => connections }
}

interface OpenaiBody {
  messages: { role: string; content: string; tool_call_id?: string; tool_calls?: { id: string; function: { name: string; arguments: string } }[] }[]
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
    model: sent['model'], stream: sent['stream'], temperature: sent['temperature'], max_tokens: sent['max_tokens'],
    system: messages[0]?.content, tools: tools.map((tool) => tool.function.name), messages: lines.slice(1),
  }
}

interface AnthropicBody {
  system: { text: string }[]
  messages: { role: string; content: { type: string; text: string; id: string; input: object; tool_use_id: string; content: string }[] }[]
  tools?: { name: string }[]
}

function readAnthropic(sent: Record<string, unknown>): object {
  const { system, messages, tools = [] } = sent as unknown as AnthropicBody
  const lines = messages.flatMap(({ role, content }) => {
    if (role === 'assistant') return [`calls ${content.map(({ id, input }) => `${id} ${JSON.stringify(input)}`).join(' ')}`]
    return content.map((part) => (part.type === 'text' ? `user ${part.text}` : `result ${part.tool_use_id} ${part.content}`))
  })
  return {
    model: sent['model'], stream: sent['stream'], temperature: sent['temperature'], max_tokens: sent['max_tokens'],
    system: system.map(({ text }) => text).join(''), tools: tools.map(({ name }) => name), messages: lines,
  }
}
