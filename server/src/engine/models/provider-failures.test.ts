import assert from 'node:assert/strict'
import { after, afterEach, beforeEach, describe, it } from 'node:test'
import {
  type FakeBehaviour,
  type FakeModelServer,
  startFakeModelServer,
} from '../../../test/fake-models/fake-model-server.ts'
import { modelFaults } from '../../../test/fake-models/fake-model-faults.ts'
import { modelRequest } from '../../../test/fake-models/model-request.ts'
import {
  failsWith,
  makeModel,
  pathOf,
  providerKey,
  providerKinds,
} from '../../../test/fake-models/provider-under-test.ts'
import { sample } from '../../../test/long-run.ts'
import type { ModelError, ModelErrorCode } from './model.ts'

/** The end of the process in production: nothing that a provider does may cause one. */
const unhandled: unknown[] = []
process.on('unhandledRejection', (reason) => unhandled.push(reason))
after(() => assert.deepEqual(unhandled, []))

let server: FakeModelServer
beforeEach(async () => {
  server = await startFakeModelServer()
})
afterEach(() => server.close())

for (const kind of providerKinds) {
  describe(`a failure of kind ${kind}`, () => {
    const statuses: [number, ModelErrorCode, boolean][] = [
      [400, 'provider_refused_request', false],
      [401, 'provider_credentials_refused', false],
      [403, 'provider_credentials_refused', false],
      [404, 'model_not_found', false],
      [408, 'provider_timeout', true],
      [413, 'provider_refused_request', false],
      [422, 'provider_refused_request', false],
      [429, 'provider_rate_limited', true],
      [500, 'provider_unavailable', true],
      [502, 'provider_unavailable', true],
      [503, 'provider_unavailable', true],
      [504, 'provider_timeout', true],
      [529, 'provider_unavailable', true],
      [301, 'provider_bad_answer', false],
    ]
    for (const [status, code, retryable] of sample(statuses, 4)) {
      it(`a model of kind ${kind} turns status ${status} into ${code}, asks once, and repeats the message of the provider`, async () => {
        server.next({ do: 'status', status, message: `because of ${status}`, headers: { location: '/elsewhere' } })
        const said = (error: ModelError): boolean => status === 301 || error.message.includes(`because of ${status}`)
        await assert.rejects(
          makeModel(kind, server.base_url).call(modelRequest('Hello?')),
          failsWith(code, retryable, (error) => said(error) && error.network.bytes_in > 0),
        )
        assert.equal(server.requests.length, 1)
      })
    }

    const bodies = [
      '',
      'upstream connect error',
      '{"detail": "nope"}',
      '{"error": "just words"}',
      '<html>Bad Gateway</html>',
      '[]',
      'null',
    ]
    for (const body of sample(bodies, 2)) {
      it(`a model of kind ${kind} understands a status whose body is ${body || 'empty'}`, async () => {
        server.next({ do: 'status', status: 502, body })
        await assert.rejects(
          makeModel(kind, server.base_url).call(modelRequest('Hello?')),
          failsWith('provider_unavailable', true, ({ message }) => message.includes('502')),
        )
      })
    }

    const inSeconds = (seconds: number): string => new Date(Date.now() + seconds * 1000).toUTCString()
    // Dates are made when their test runs: those before it take a while.
    const waits: [string, () => Record<string, string>, (seconds: number | undefined) => boolean][] = [
      ['nothing', () => ({}), (seconds) => seconds === undefined],
      ['seconds', () => ({ 'retry-after': '7' }), (seconds) => seconds === 7],
      ['milliseconds', () => ({ 'retry-after': '7', 'retry-after-ms': '250' }), (seconds) => seconds === 0.25],
      [
        'a date to come',
        () => ({ 'retry-after': inSeconds(60) }),
        (seconds) => seconds !== undefined && seconds > 0 && seconds <= 60,
      ],
      ['a date that has passed', () => ({ 'retry-after': inSeconds(-60) }), (seconds) => seconds === 0],
      ['a word', () => ({ 'retry-after': 'soon' }), (seconds) => seconds === undefined],
    ]
    for (const [name, headersNow, expected] of sample(waits, 2)) {
      it(`a model of kind ${kind} reads Retry-After with ${name}`, async () => {
        const headers = headersNow()
        server.next({ do: 'status', status: 429, headers }, { do: 'status', status: 503, headers })
        await assert.rejects(
          makeModel(kind, server.base_url).call(modelRequest('Hello?')),
          failsWith('provider_rate_limited', true, ({ retry_after }) => expected(retry_after)),
        )
        await assert.rejects(
          makeModel(kind, server.base_url).call(modelRequest('Hello?')),
          failsWith('provider_unavailable', true, ({ retry_after }) => expected(retry_after)),
        )
      })
    }

    const broken: [string, FakeBehaviour, ModelErrorCode, boolean][] = [
      ['resets the connection', { do: 'reset' }, 'provider_unavailable', true],
      [
        'cuts the connection after three pieces',
        { do: 'cut', pieces: 3, text: 'a b c d' },
        'provider_unavailable',
        true,
      ],
      [
        'ends without saying that it is finished',
        { do: 'end_early', pieces: 4, text: 'a b c d' },
        'provider_unavailable',
        true,
      ],
      [
        'ends in the middle of a tool call',
        { do: 'end_early', pieces: 3, tool_calls: [{ name: 'x', arguments: { a: 1 } }] },
        'provider_unavailable',
        true,
      ],
      ['sends nothing at all', { do: 'raw', body: '' }, 'provider_unavailable', true],
      [
        'sends a stream that is not JSON',
        { do: 'raw', body: 'data: {"choices": [\n\ndata: oops\n\n' },
        'provider_bad_answer',
        true,
      ],
      [
        'sends JSON of another shape',
        { do: 'raw', body: 'data: {"type":"message_start","choices":"none"}\n\n' },
        // The library for Responses passes over events that it does not know.
        kind === 'openai' ? 'provider_unavailable' : 'provider_bad_answer',
        true,
      ],
      ['sends rubbish as a stream', { do: 'raw', body: '\0\xff\xfe}{'.repeat(100) }, 'provider_unavailable', true],
      [
        'sends a page',
        { do: 'raw', body: '<html>Hello</html>', content_type: 'text/html' },
        'provider_bad_answer',
        false,
      ],
      [
        'sends JSON without a stream',
        { do: 'raw', body: '{"choices": []}', content_type: 'application/json' },
        'provider_bad_answer',
        false,
      ],
      [
        'complains with status 200',
        {
          do: 'raw',
          body: '{"error":{"message":"slow down","type":"rate_limit_error","code":"rate_limit_exceeded"}}',
          content_type: 'application/json',
        },
        'provider_rate_limited',
        true,
      ],
      [
        'complains about the key with status 200',
        {
          do: 'raw',
          body: '{"error":{"message":"bad key","type":"authentication_error"}}',
          content_type: 'application/json',
        },
        'provider_credentials_refused',
        false,
      ],
      [
        'complains with status 200 in words only',
        { do: 'raw', body: '{"error":"out of memory"}', content_type: 'application/json' },
        'provider_unavailable',
        true,
      ],
      [
        'complains at the start of the stream',
        {
          do: 'error_event',
          pieces: 0,
          error: { type: 'overloaded_error', message: 'overloaded', code: 'overloaded' },
        },
        'provider_unavailable',
        true,
      ],
      [
        'complains in the middle of the stream',
        {
          do: 'error_event',
          pieces: 4,
          text: 'a b c',
          error: { type: 'server_error', message: 'it broke', code: null },
        },
        'provider_unavailable',
        true,
      ],
      [
        'finds the limit in the middle of the stream',
        {
          do: 'error_event',
          pieces: 4,
          text: 'a b c',
          error: { type: 'rate_limit_error', message: 'too fast', code: 'rate_limit_exceeded' },
        },
        'provider_rate_limited',
        true,
      ],
      [
        'refuses the key in the middle of the stream',
        {
          do: 'error_event',
          pieces: 4,
          text: 'a b c',
          error: { type: 'authentication_error', message: 'revoked', code: 'invalid_api_key' },
        },
        'provider_credentials_refused',
        false,
      ],
    ]
    for (const [what, behaviour, code, retryable] of sample(broken, 5)) {
      it(`a model of kind ${kind} fails with ${code} when the provider ${what}, and works again after that`, async () => {
        server.next(behaviour)
        const model = makeModel(kind, server.base_url)
        await assert.rejects(
          model.call(modelRequest('Hello?')),
          failsWith(code, retryable, ({ network }) => network.bytes_out > 0),
        )
        assert.equal((await model.call(modelRequest('Hello?'))).text, 'Hello from the fake model.')
        assert.equal(server.requests.length, 2)
      })
    }

    it(`an error of a model of kind ${kind} never has the key, whatever the provider answers`, async () => {
      server.next({ do: 'status', status: 401, message: `Incorrect API key provided: ${providerKey}.` })
      await assert.rejects(
        makeModel(kind, server.base_url).call(modelRequest('Hello?')),
        failsWith('provider_credentials_refused', false, (error) => {
          const output = JSON.stringify([error.message, error.stack, error.cause])
          return !output.includes(providerKey) && error.message.includes('[redacted]')
        }),
      )
    })

    it(`an error of a model of kind ${kind} says that the host is unreachable`, async () => {
      const deleted = await startFakeModelServer()
      await deleted.close()
      await assert.rejects(
        makeModel(kind, deleted.base_url).call(modelRequest('Hello?')),
        failsWith('provider_unavailable', true, ({ message }) => message.includes('ECONNREFUSED')),
      )
      await assert.rejects(
        makeModel(kind, 'http://unknown.invalid/v1').call(modelRequest('Hello?')),
        failsWith('provider_unavailable', true),
      )
    })
  })
}

it('a call that failed for a spent quota is not retried', async () => {
  server.next({ do: 'status', status: 429, message: 'You exceeded your quota.', code: 'insufficient_quota' })
  await assert.rejects(
    makeModel('openai', server.base_url).call(modelRequest('Hello?')),
    failsWith('provider_rate_limited', false),
  )
})

it('the error of a request that needs the Responses protocol names its setting', async () => {
  const message = 'Function tools are not supported in /v1/chat/completions. Please use /v1/responses instead.'
  for (const [kind, setting] of [
    ['openai', 'OPENAI_PROTOCOL=responses'],
    ['openai_compatible', 'CADRE_PROVIDER_OPENAI_COMPATIBLE_PROTOCOL=responses'],
  ] as const) {
    server.next({ do: 'status', status: 400, message })
    await assert.rejects(
      makeModel(kind, server.base_url).call(modelRequest('Hello?')),
      failsWith('provider_refused_request', false, (error) => error.message.includes(setting)),
    )
  }
})

for (const kind of providerKinds) {
  describe(`what a provider of kind ${kind} may do wrong`, () => {
    for (const { what, behave, code, retryable } of sample(modelFaults, 4)) {
      it(`a call to a provider of kind ${kind} that ${what} fails with ${code}, and the next one works`, async () => {
        server.next(behave({ path: pathOf(kind) }))
        const limits = code === 'provider_timeout' ? { start_ms: 500, idle_ms: 500 } : {}
        const model = makeModel(kind, server.base_url, limits)
        await assert.rejects(model.call(modelRequest('Hello?')), failsWith(code, retryable))
        assert.equal((await model.call(modelRequest('Hello?'))).text, 'Hello from the fake model.')
      })
    }

    it(`a model of kind ${kind} never takes a part of an answer for the whole, wherever it is cut`, async () => {
      const answer = { text: 'one two', tool_calls: [{ id: 'call_a', name: 'weather', arguments: { city: 'Bonn' } }] }
      const outcomes: string[] = []
      for (const how of ['cut', 'end_early'] as const) {
        for (let pieces = 0; pieces < 16; pieces++) {
          server.next({ do: how, pieces, ...answer })
          const result = await makeModel(kind, server.base_url)
            .call(modelRequest('Hello?'))
            .catch((error: ModelError) => error)
          if (result instanceof Error) assert.ok(result.retryable, result.message)
          else assert.deepEqual([result.text, result.tool_calls], ['one two', answer.tool_calls])
          outcomes.push(result instanceof Error ? result.code : 'whole')
        }
      }
      assert.deepEqual(new Set(outcomes), new Set(['provider_unavailable', 'whole']))
    })

    it(`a model of kind ${kind} accepts a whole answer, however slowly it comes`, async () => {
      const limitKey = Promise.withResolvers<void>()
      // A piece further on the Responses protocol, whose answers begin with one more event.
      server.next({ do: 'hold', pieces: kind === 'openai' ? 5 : 4, text: 'one two three', until: limitKey.promise })
      const heard = Promise.withResolvers<void>()
      const call = makeModel(kind, server.base_url).call(modelRequest('Hello?', { on_delta: () => heard.resolve() }))
      await heard.promise
      limitKey.resolve()
      assert.equal((await call).text, 'one two three')
    })
  })
}

// About 600 ms: reasoning that is broken or too large to use.
describe('reasoning of a provider', () => {
  const ask = (model: string) => modelRequest('Hello?', { model, effort: 'high', max_tokens: 8000 })
  const large = 'x'.repeat(3 * 1024 * 1024)
  const cases: [
    what: string,
    kind: 'openai' | 'anthropic' | 'openai_compatible',
    model: string,
    behaviour: FakeBehaviour,
    words: RegExp,
  ][] = [
    [
      'with encrypted content of megabytes',
      'openai',
      'gpt-5.6-sol',
      { do: 'answer', reasoning: [{ encrypted: large }], text: 'Hi' },
      /more than 2097152 characters of encrypted reasoning/,
    ],
    [
      'with a signature of megabytes',
      'anthropic',
      'claude-opus-4-8',
      { do: 'answer', reasoning: [{ text: 'Hm.', signature: large }], text: 'Hi' },
      /more than 2097152 characters of encrypted reasoning/,
    ],
    [
      'with redacted thinking of megabytes',
      'anthropic',
      'claude-opus-4-8',
      { do: 'answer', reasoning: [{ redacted: [large] }], text: 'Hi' },
      /more than 2097152 characters of encrypted reasoning/,
    ],
    ...(['openai', 'anthropic', 'openai_compatible'] as const).map((kind): (typeof cases)[number] => [
      'without an end',
      kind,
      { openai: 'gpt-5.6-sol', anthropic: 'claude-opus-4-8', openai_compatible: 'deepseek-reasoner' }[kind],
      {
        do: 'answer',
        reasoning: [
          {
            text: 'word and '
              .repeat(20)
              .padEnd(64 * 1024, 'x')
              .concat(' ')
              .repeat(80),
          },
        ],
        text: 'Hi',
      },
      /longer than 4194304 characters/,
    ]),
    [
      'of another shape',
      'openai',
      'gpt-5.6-sol',
      {
        do: 'raw',
        body: 'data: {"type":"response.output_item.done","output_index":0,"item":{"type":"reasoning","id":5,"summary":"x"}}\n\n',
      },
      /./,
    ],
  ]
  for (const [what, kind, model, behaviour, pattern] of cases) {
    it(`${what} fails the call of kind ${kind} with an error that names it, and the next one works`, async () => {
      server.next(behaviour)
      const provider = makeModel(kind, server.base_url)
      await assert.rejects(provider.call(ask(model)), (error: ModelError) => {
        assert.ok(['provider_bad_answer', 'provider_unavailable'].includes(error.code), error.message)
        assert.match(error.message, pattern)
        return error.message.length < 1000
      })
      assert.equal((await provider.call(ask(model))).text, 'Hello from the fake model.')
    })
  }
})
