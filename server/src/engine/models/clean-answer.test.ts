import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, it } from 'node:test'
import { type FakeModelServer, startFakeModelServer } from '../../../test/fake-models/fake-model-server.ts'
import { modelRequest } from '../../../test/fake-models/model-request.ts'
import { failsWith, makeModel, providerKinds } from '../../../test/fake-models/provider-under-test.ts'
import { cleanAnswer } from './clean-answer.ts'
import type { ModelAnswer } from './model.ts'

const answer: ModelAnswer = {
  text: 'Hello',
  tool_calls: [],
  finish_reason: 'stop',
  model: 'gpt-4o',
  usage: { input_tokens: 3, output_tokens: 2, cached_tokens: 1 },
  network: { bytes_in: 1, bytes_out: 1 },
}
const call = (id: string, name = 'weather', args: unknown = {}) => ({ id, name, arguments: args })

describe('what a provider says', () => {
  it('a valid answer of a provider is unchanged', () => {
    const whole = { ...answer, tool_calls: [call('call_1', 'shop/weather.now', { city: 'Köln' }), call('toolu_01A-b')] }
    assert.deepEqual(cleanAnswer(whole), whole)
  })

  it('an answer is cleaned for storage: no U+0000, no lone surrogates, names of at most 200 characters', () => {
    const cleaned = cleanAnswer({
      ...answer,
      text: 'a\0b\ud800',
      model: `m\0${'x'.repeat(500)}`,
      tool_calls: [call('c', 'n'.repeat(500), { 'k\0': ['\udc00'] })],
    })
    assert.equal(cleaned.text, 'a\uFFFDb\uFFFD')
    assert.equal(cleaned.model, `m\uFFFD${'x'.repeat(198)}`)
    assert.deepEqual(cleaned.tool_calls, [call('c', 'n'.repeat(200), { 'k\uFFFD': ['\uFFFD'] })])
  })

  it('invalid token counts of a provider become 0', () => {
    const counted = (input_tokens: unknown) =>
      cleanAnswer({ ...answer, usage: { ...answer.usage, input_tokens: input_tokens as number } }).usage.input_tokens
    const cases: [unknown, number][] = [
      [7, 7],
      [1.4, 1],
      [-5, 0],
      [NaN, 0],
      [Infinity, 1e9],
      [1e300, 1e9],
      ['12', 0],
      [null, 0],
      [undefined, 0],
    ]
    for (const [given, kept] of cases) assert.equal(counted(given), kept, String(given))
  })

  it('every tool call gets a unique id that all providers accept', () => {
    const given = ['', '', 'call 1', 'call 1', 'call_1', 'x'.repeat(500), 'x'.repeat(501), 'ü@/.']
    const ids = cleanAnswer({ ...answer, tool_calls: given.map((id) => call(id)) }).tool_calls.map(({ id }) => id)
    assert.equal(new Set(ids).size, given.length)
    for (const id of ids) assert.match(id, /^[A-Za-z0-9_-]{1,64}$/)
  })
})

for (const kind of providerKinds) {
  describe(`an answer of kind ${kind}`, () => {
    let server: FakeModelServer
    beforeEach(async () => void (server = await startFakeModelServer()))
    afterEach(() => server.close())

    it(`an answer of kind ${kind} is cleaned before it is stored or shown`, async () => {
      server.next({
        do: 'answer',
        text: 'a\0b',
        model: 'm'.repeat(1000),
        usage: { input_tokens: -20, output_tokens: 2.6 },
        tool_calls: [
          { id: 'same', name: 'weather', arguments: {} },
          { id: 'same', name: 'weather', arguments: {} },
        ],
      })
      const { text, model, usage, tool_calls } = await makeModel(kind, server.base_url).call(modelRequest('Hello?'))
      assert.deepEqual([text, model, usage.input_tokens, usage.output_tokens], ['a\uFFFDb', 'm'.repeat(200), 0, 3])
      assert.equal(new Set(tool_calls.map(({ id }) => id)).size, 2)
    })

    it(`an answer of kind ${kind} that asks for too many calls is refused`, async () => {
      const tool_calls = Array.from({ length: 129 }, () => ({ name: 'weather', arguments: {} }))
      server.next({ do: 'answer', tool_calls })
      await assert.rejects(
        makeModel(kind, server.base_url).call(modelRequest('Hello?')),
        failsWith('provider_bad_answer', false, ({ message }) => message.includes('128 tool calls')),
      )
    })
  })
}
