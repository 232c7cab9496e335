import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { makeRng, type Rng, testSeed } from '../../../../test/rng.ts'
import { ModelError } from '../model.ts'
import { ProtocolViolation } from '../model-errors.ts'
import { libraryModel, type CallOptions, type OpenModel, type StreamPart } from './adapter.ts'
import { openChatModel } from './chat-model.ts'

/** Streams that are compared. */
const streams = Number(process.env['CADRE_TEST_STREAMS'] ?? 300)

const provider = {
  name: 'some-server',
  kind: 'openai_compatible',
  base_url: 'http://models.test/v1/',
  api_key: 'sk-test',
  protocol: 'chat',
} as const

/** Our model and the library's, of which each gets the same bytes; `sent` is what each sent. */
async function bothModels(bytes: Uint8Array[]): Promise<{ ours: OpenModel; library: OpenModel; sent: unknown[] }> {
  const sent: unknown[] = []
  const ours = await openChatModel(provider, 'm-1', {
    network: {
      fetch: () => assert.fail('the stream is read without the library'),
      post: (url, { body }) => {
        sent.push([url, JSON.parse(body)])
        return Promise.resolve(async (take: (bytes: Uint8Array) => void) => {
          for await (const piece of streamOf(bytes)) take(piece)
        })
      },
    },
    transformBody: undefined,
  })
  const library = createOpenAICompatible({
    name: provider.name,
    baseURL: provider.base_url,
    apiKey: provider.api_key,
    includeUsage: true,
    supportsStructuredOutputs: true,
    fetch: (url, init) => {
      assert.ok(typeof url === 'string' && typeof init?.body === 'string')
      sent.push([url, JSON.parse(init.body)])
      return Promise.resolve(
        new Response(ReadableStream.from(streamOf(bytes)), { headers: { 'content-type': 'text/event-stream' } }),
      )
    },
  }).chatModel('m-1')
  return { ours, library: libraryModel(library), sent }
}

async function* streamOf(bytes: Uint8Array[]): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  for (const piece of bytes) yield new Uint8Array(piece)
}

const hello: CallOptions = {
  prompt: [{ role: 'user', content: [{ type: 'text', text: 'Hello?' }] }],
  abortSignal: new AbortController().signal,
}

/** The parts that a model hands over, without members that are not used; or how it failed, of which the parts are no matter. */
async function partsOf(model: OpenModel, options = hello): Promise<{ parts: unknown[] } | { failed: string }> {
  const parts: unknown[] = []
  const made = new Map<string, string>()
  // The library makes up an id for a call that has none.
  const idOf = (id: string): string => {
    if (/^(call|c)\d*$/.test(id) || id.includes('-')) return id
    return made.get(id) ?? made.set(id, `made up ${made.size}`).get(id)!
  }
  try {
    await model.stream(options, (part: StreamPart) => {
      if (part.type === 'error') throw new Refused(part.error)
      // The library tells it as an error before.
      if (part.type === 'finish' && part.finishReason.unified === 'error') throw new Refused(new Error(noReason))
      if (part.type === 'response-metadata') parts.push({ type: part.type, modelId: part.modelId || null })
      else if (part.type === 'finish') parts.push({ ...part, providerMetadata: null, usage: plain(part.usage) })
      else if (part.type === 'tool-call') parts.push({ ...plain(part), toolCallId: idOf(part.toolCallId) })
      else if (part.type.startsWith('tool-input') && 'id' in part) parts.push({ ...plain(part), id: idOf(part.id) })
      else parts.push(plain(part))
    })
    return { parts }
  } catch (error) {
    return { failed: failureOf(error) }
  }
}

const noReason = 'Response stream ended without a finish reason.'

class Refused extends Error {
  readonly said: unknown
  constructor(said: unknown) {
    super('refused')
    this.said = said
  }
}

function failureOf(error: unknown): string {
  const said = error instanceof Refused ? error.said : error
  if (said instanceof ProtocolViolation) return 'not the protocol'
  if (said instanceof Error && /AI_(JSONParse|TypeValidation)Error/.test(said.name)) return 'not the protocol'
  return said instanceof Error ? said.message : JSON.stringify(said)
}

/** Without members that are undefined. */
function plain<T extends object>(part: T): object {
  return JSON.parse(JSON.stringify(part)) as object
}

const texts = ['Hello', ' — “signs” 👩‍🚀', '', '\n', ' and\r\nmore', 'data: x']
const names = ['weather', 'search', '', null, undefined]
const odd = [null, 7, true, [], {}, 'text']

/** One event: mostly of the protocol, sometimes of a kind that servers are known for, seldom nonsense. */
function chunk(rng: Rng): unknown {
  const maybe = <T>(share: number, value: () => T): T | undefined => (rng.next() < share ? value() : undefined)
  const text = () => maybe(0.95, () => rng.pick(texts)) ?? rng.pick(odd)
  const call = () => ({
    index: maybe(0.85, () => rng.pick([0, 0, 1, 2, null])),
    id: maybe(0.5, () => rng.pick(['call1', 'call2', '', null])),
    function: {
      name: maybe(0.6, () => rng.pick(names)),
      arguments: maybe(0.8, () => rng.pick(['{"a":', '1}', '{}', '', null])),
    },
    extra_content: maybe(0.1, () => ({ google: { thought_signature: rng.pick(['sig', null]) } })),
  })
  const delta = () => ({
    role: maybe(0.3, () => rng.pick(['assistant', '', null])),
    content: maybe(
      0.6,
      () =>
        maybe(0.9, text) ?? [
          { type: 'text', text: text() },
          { type: 'thinking', thinking: [{ type: 'text', text: text() }] },
        ],
    ),
    refusal: maybe(0.05, text),
    reasoning_content: maybe(0.2, () => rng.pick(texts)),
    reasoning: maybe(0.1, () => rng.pick(texts)),
    tool_calls: maybe(0.3, () => Array.from({ length: 1 + Math.floor(rng.next() * 2) }, call)),
  })
  const answer = {
    id: maybe(0.8, () => rng.pick(['c1', '', null])),
    created: maybe(0.5, () => rng.pick([0, 1_764_000_000, null])),
    model: maybe(0.8, () => rng.pick(['m-1-2026', '', null])),
    choices:
      rng.next() < 0.05
        ? []
        : [
            {
              delta: maybe(0.95, delta) ?? rng.pick([null, undefined]),
              finish_reason: maybe(0.12, () =>
                rng.pick(['stop', 'length', 'tool_calls', 'function_call', 'content_filter', 'eos', '', null]),
              ),
            },
          ],
    usage: maybe(0.15, () => ({
      prompt_tokens: rng.pick([3, 0, null]),
      completion_tokens: rng.pick([5, null]),
      prompt_tokens_details: rng.pick([undefined, null, { cached_tokens: 2, cache_write_tokens: 1 }]),
      completion_tokens_details: rng.pick([undefined, null, { reasoning_tokens: 4 }]),
    })),
  }
  const kind = rng.next()
  if (kind < 0.97) return answer
  if (kind < 0.98)
    return {
      error: { message: 'too much', type: rng.pick(['rate_limit_error', null]), code: rng.pick([429, 'slow', null]) },
    }
  if (kind < 0.99) return { ...answer, [rng.pick(['id', 'created', 'choices', 'usage', 'model'])]: rng.pick(odd) }
  return rng.pick<unknown>([null, [], 'text', {}, { error: 'plain' }, { error: { code: 1 } }])
}

/** A stream as a server sends it, cut into pieces anywhere, also within a character. */
function streamBytes(rng: Rng): Uint8Array[] {
  const line = rng.pick(['\n', '\n', '\r\n'])
  const events = Array.from({ length: 1 + Math.floor(rng.next() * 12) }, () => {
    const comment = rng.next() < 0.1 ? `: keep-alive${line}${line}` : ''
    const data = rng.next() < 0.01 ? '{"choices":[' : JSON.stringify(chunk(rng))
    return `${comment}data:${rng.next() < 0.8 ? ' ' : ''}${data}${line}${line}`
  })
  if (rng.next() < 0.8) events.push(`data: {"choices":[{"delta":{},"finish_reason":"stop"}]}${line}${line}`)
  if (rng.next() < 0.8) events.push(`data: [DONE]${line}${line}`)
  const bytes = Buffer.from(events.join(''))
  const pieces: Uint8Array[] = []
  for (let at = 0; at < bytes.length;) {
    const length = 1 + Math.floor(rng.next() ** 3 * 400)
    pieces.push(bytes.subarray(at, at + length))
    at += length
  }
  return pieces
}

describe('a stream of Chat Completions', () => {
  // 300 streams take about 700 ms. Run 10,000 after a change of the reader or the library.
  it('Cadre reads any Chat Completions stream like the provider library', async () => {
    const seed = testSeed()
    const rng = makeRng(seed)
    const seen = { failed: 0, calls: 0 }
    for (let round = 0; round < streams; round++) {
      const bytes = streamBytes(rng)
      const { ours, library } = await bothModels(bytes)
      const expected = await partsOf(library)
      assert.deepEqual(
        await partsOf(ours),
        expected,
        `seed ${seed}, stream ${round}: ${Buffer.concat(bytes).toString()}`,
      )
      if ('failed' in expected) seen.failed++
      else if (JSON.stringify(expected.parts).includes('tool-call')) seen.calls++
    }
    assert.ok(
      seen.failed > streams / 60 && seen.failed < streams * 0.8 && seen.calls > streams / 15,
      JSON.stringify(seen),
    )
  })

  it('Cadre sends the same Chat Completions request as the provider library', async () => {
    const { ours, library, sent } = await bothModels([Buffer.from('data: [DONE]\n\n')])
    const options: CallOptions = {
      ...hello,
      prompt: [
        { role: 'system', content: 'Be short.' },
        ...hello.prompt,
        {
          role: 'assistant',
          content: [
            { type: 'reasoning', text: 'Hm.' },
            { type: 'tool-call', toolCallId: 'call1', toolName: 'weather', input: { city: 'Bonn' } },
          ],
        },
        {
          role: 'tool',
          content: [
            { type: 'tool-result', toolCallId: 'call1', toolName: 'weather', output: { type: 'text', value: 'rain' } },
          ],
        },
      ],
      temperature: 0.5,
      maxOutputTokens: 100,
      tools: [
        {
          type: 'function',
          name: 'weather',
          description: 'The weather.',
          inputSchema: { type: 'object', properties: {} },
        },
      ],
      toolChoice: { type: 'required' },
      providerOptions: { openaiCompatible: { reasoningEffort: 'low' }, someServer: { service_tier: 'flex' } },
    }
    await partsOf(ours, options)
    await partsOf(library, options)
    assert.equal(sent.length, 2)
    assert.deepEqual(sent[0], sent[1])
  })

  it('an event that is longer than its bound ends the answer', async () => {
    const line = Buffer.alloc(1024 * 1024, 'x')
    const { ours } = await bothModels([Buffer.from('data: "'), ...Array.from({ length: 9 }, () => line)])
    await assert.rejects(
      ours.stream(hello, () => {}),
      (error) => error instanceof ModelError && error.code === 'provider_bad_answer' && !error.retryable,
    )
  })

  it('an answer whose tool calls never get a name ends at a bound', async () => {
    const eventOf = (call: object): string =>
      `data: ${JSON.stringify({ choices: [{ delta: { tool_calls: [call] } }] })}\n\n`
    const long = eventOf({ index: 0, function: { arguments: 'x'.repeat(1024 * 1024) } }).repeat(5)
    const many = Array.from({ length: 1001 }, (_, index) => eventOf({ index, function: { arguments: '' } })).join('')
    for (const events of [long, many]) {
      const { ours } = await bothModels([Buffer.from(events)])
      await assert.rejects(
        ours.stream(hello, () => {}),
        (error) => error instanceof ModelError && error.code === 'provider_bad_answer' && !error.retryable,
      )
    }
  })

  it('a finish reason that is the name of a member of all objects is read like any unknown one', async () => {
    const { ours } = await bothModels([
      Buffer.from('data: {"choices":[{"delta":{"content":"Hi"},"finish_reason":"constructor"}]}\n\n'),
    ])
    assert.match(JSON.stringify(await partsOf(ours)), /"finishReason":\{"unified":"other","raw":"constructor"\}/)
  })
})
