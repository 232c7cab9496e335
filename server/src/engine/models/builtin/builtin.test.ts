import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, it } from 'node:test'
import { modelRequest } from '../../../../test/fake-models/model-request.ts'
import { type ModelAnswer, ModelError, type ModelErrorCode, type ModelMessage, type ModelRequest } from '../model.ts'
import { makeModels } from '../models.ts'

const { resolve } = makeModels({ default_model: 'builtin/echo' })

const echo = (content: string, more: Partial<ModelRequest> = {}) =>
  resolve('builtin/echo').model.call(modelRequest(content, more))
const play = (script: unknown, more: Partial<ModelRequest> = {}) =>
  resolve('builtin/script').model.call(modelRequest(typeof script === 'string' ? script : JSON.stringify(script), more))
const fails = (code: ModelErrorCode, message: RegExp) => (error: unknown) =>
  error instanceof ModelError && error.code === code && message.test(error.message)
const saying = (answer: ModelAnswer): ModelMessage => ({
  role: 'assistant',
  content: answer.text,
  tool_calls: answer.tool_calls,
})

describe('builtin/echo', () => {
  it('builtin/echo answers with the last message of the user, in pieces, and counts words', async () => {
    const pieces: string[] = []
    const answer = await echo('', {
      system_prompt: 'Repeat after me.',
      messages: [
        { role: 'user', content: 'one' },
        { role: 'assistant', content: 'one' },
        { role: 'user', content: '  two  three\nfour ' },
        { role: 'tool', content: 'x' },
      ],
      on_delta: (piece) => void pieces.push(piece),
    })
    assert.deepEqual(answer, {
      text: '  two  three\nfour ',
      tool_calls: [],
      finish_reason: 'stop',
      model: 'echo',
      usage: { input_tokens: 9, output_tokens: 3, cached_tokens: 0 },
      network: { bytes_in: 0, bytes_out: 0 },
    })
    assert.deepEqual(pieces, ['  ', 'two  ', 'three\n', 'four '])
  })

  it('builtin/echo cuts its answer at max_tokens', async () => {
    const answer = await echo(' one  two three', { max_tokens: 2 })
    assert.deepEqual([answer.text, answer.finish_reason, answer.usage.output_tokens], ['one  two', 'length', 2])
    assert.equal((await echo('one two', { max_tokens: 2 })).finish_reason, 'stop')
  })

  it('builtin/echo answers nothing to nothing', async () => {
    for (const more of [{}, { messages: [] }])
      assert.deepEqual([(await echo('', more)).text, (await echo('', more)).finish_reason], ['', 'stop'])
  })

  it('builtin/echo is done at once with the longest input, in a bounded number of pieces', async () => {
    for (const text of [
      'a '.repeat(500_000),
      ' '.repeat(1_000_000),
      `a${' '.repeat(1_000_000)}`,
      'a'.repeat(1_000_000),
    ]) {
      let pieces = ''
      let count = 0
      await echo(text, { on_delta: (piece) => void ((pieces += piece), count++) })
      assert.ok(pieces === text && count <= 64, String(count))
    }
  })

  it('builtin/echo stops with the reason of its signal', async () => {
    const stop = new AbortController()
    const reason = new Error('stopped')
    await assert.rejects(echo('a b c', { signal: stop.signal, on_delta: () => stop.abort(reason) }), reason)
  })
})

describe('builtin/script', () => {
  it('builtin/script plays texts, counts and an end', async () => {
    const pieces: string[] = []
    const script = [
      { text: 'Hello ' },
      { delay_ms: 0 },
      { text: 'world.' },
      { usage: { input_tokens: 1000, cached_tokens: 10 } },
      { end: 'length' },
    ]
    const answer = await play(script, { on_delta: (piece) => void pieces.push(piece) })
    assert.deepEqual(
      [answer.text, answer.finish_reason, answer.usage],
      ['Hello world.', 'length', { input_tokens: 1000, output_tokens: 2, cached_tokens: 10 }],
    )
    assert.equal(pieces.join(''), 'Hello world.')
  })

  it('builtin/script plays the same answer for the same conversation', async () => {
    const script: ModelMessage = {
      role: 'user',
      content: JSON.stringify([
        { text: 'Looking.' },
        {
          tool_calls: [
            { name: 'lookup', arguments: { q: 1 } },
            { name: 'lookup', id: 'mine' },
          ],
        },
        { text: 'Found {{tool_result}}.' },
      ]),
    }
    const first = await play('', { messages: [script] })
    assert.deepEqual(first, await play('', { messages: [script] }))
    assert.deepEqual([first.text, first.finish_reason], ['Looking.', 'tool_calls'])
    assert.deepEqual(first.tool_calls, [
      { id: 'call_1_1', name: 'lookup', arguments: { q: 1 } },
      { id: 'mine', name: 'lookup', arguments: {} },
    ])
    const result: ModelMessage = {
      role: 'tool',
      content: '42 $& apples',
      tool_call_id: 'call_1_1',
      tool_name: 'lookup',
    }
    const messages = [script, saying(first), result, { role: 'user' as const, content: 'Hurry up.' }]
    const second = await play('', { messages })
    assert.deepEqual([second.text, second.finish_reason], ['Found 42 $& apples.', 'stop'])
    assert.equal((await play('', { messages: [...messages, saying(second)] })).text, 'Looking.')
  })

  it('builtin/script restarts with a new script, and gives every call a unique id', async () => {
    const script = (name: string): ModelMessage => ({
      role: 'user',
      content: `[{"tool_calls": [{"name": "${name}"}]}]`,
    })
    const first = await play('', { messages: [script('a')] })
    const second = await play('', { messages: [script('a'), saying(first), script('b')] })
    assert.deepEqual(
      [...first.tool_calls, ...second.tool_calls].map(({ id, name }) => `${id} ${name}`),
      ['call_1_1 a', 'call_2_1 b'],
    )
  })

  it('builtin/script finds its script in the system prompt before it looks at the messages', async () => {
    const system_prompt = '[{"text": "one"}, {"end": "stop"}, {"text": "two"}]'
    assert.equal((await play('[{"text": "other"}]', { system_prompt })).text, 'one')
    const messages: ModelMessage[] = [
      { role: 'user', content: 'Hi' },
      { role: 'assistant', content: 'one' },
      { role: 'user', content: 'More' },
    ]
    assert.equal((await play('', { system_prompt, messages })).text, 'two')
  })

  it('builtin/script fails as often as the script says, or always, after what it said before', async () => {
    const pieces: string[] = []
    const on_delta = (piece: string): void => void pieces.push(piece)
    const script = [
      { text: 'partial ' },
      { error: { code: 'provider_rate_limited', retry_after: 2, times: 2 } },
      { text: 'done' },
    ]
    for (const attempt of [undefined, 1, 2]) {
      await assert.rejects(
        play(script, { attempt, on_delta }),
        (error) =>
          error instanceof ModelError &&
          error.code === 'provider_rate_limited' &&
          error.retryable &&
          error.retry_after === 2,
      )
    }
    assert.deepEqual(pieces, ['partial ', 'partial ', 'partial '])
    assert.equal((await play(script, { attempt: 3 })).text, 'partial done')
    const always = [{ error: { code: 'provider_refused_request', message: 'No.' } }]
    await assert.rejects(
      play(always, { attempt: 99 }),
      (error) => error instanceof ModelError && !error.retryable && error.message === 'No.',
    )
  })

  it('repeats', async () => {
    const script = [
      { repeat: 2, steps: [{ text: 'a' }, { repeat: 3, steps: [{ text: 'b' }] }] },
      { repeat: 0, steps: [{ text: 'never' }] },
    ]
    assert.equal((await play(script)).text, 'abbbabbb')
  })

  it('builtin/script stops in the middle of a delay with the reason of its signal', async () => {
    const stop = new AbortController()
    const reason = new Error('stopped')
    await assert.rejects(
      play([{ text: 'a' }, { delay_ms: 600_000 }], {
        signal: stop.signal,
        on_delta: () => setImmediate(() => stop.abort(reason)),
      }),
      reason,
    )
  })

  const wrong: [unknown, RegExp][] = [
    ['Hello', /neither the system prompt nor a message is a script/],
    ['[{"text": ]', /not JSON/],
    ['[]', /at least one step/],
    ['[1]', /step 1 must be an object/],
    [[{}], /step 1 must have exactly one of/],
    [[{ text: 'a', end: 'stop' }], /exactly one of/],
    [[{ text: 'a' }, { text: 1 }], /step 2: text must be a string/],
    [[{ delay_ms: -1 }], /delay_ms must be a whole number from 0 to 600000/],
    [[{ delay_ms: 1e9 }], /delay_ms/],
    [[{ tool_calls: [] }], /at least one call/],
    [[{ tool_calls: [{ name: 'a' }, {}] }], /tool_calls\[1\] needs a name/],
    [[{ tool_calls: [{ name: 'a', id: 1 }] }], /id must be a string/],
    [[{ error: { code: 'oops' } }], /error.code must be one of/],
    [[{ error: { code: 'provider_timeout', times: 'x' } }], /error.times/],
    [[{ error: { code: 'provider_timeout', retry_after: -1 } }], /retry_after/],
    [[{ error: { code: 'provider_timeout', retryable: 1 } }], /retryable/],
    [[{ usage: { input_tokens: 1.5 } }], /usage.input_tokens/],
    [[{ end: 'now' }], /end must be one of/],
    [[{ repeat: 2 }], /repeat needs steps/],
    [[{ repeat: 'x', steps: [{ text: '' }] }], /repeat must be/],
    [[{ repeat: 2, steps: [{ text: 1 }] }], /step 1, step 1: text/],
    [[{ repeat: 10_000, steps: [{ repeat: 10_000, steps: [{ text: '' }] }] }], /more than 10000 steps/],
    [[{ repeat: 0, steps: [{ text: '' }] }], /no answer/],
    [`[${'{"repeat":1,"steps":['.repeat(6)}{"text":""}${']}'.repeat(6)}]`, /nested/],
  ]
  for (const [script, message] of wrong) {
    it(`builtin/script refuses ${JSON.stringify(script).slice(0, 60)} and says why`, () =>
      assert.rejects(play(script), fails('provider_refused_request', message)))
  }
})

describe('the guide of the test models', () => {
  const guide = readFileSync(new URL('../../../../../docs/guides/test-models.md', import.meta.url), 'utf8')
  // Each example is followed by a sentence whose code is what one call after the other gives.
  const examples = [...guide.matchAll(/```json\n(.*?)```\n\n(.*?)\n/gs)].map(([, script = '', told = '']) => ({
    script,
    told,
  }))

  it('the guide of the test models has examples', () => assert.ok(examples.length >= 5))
  for (const { script, told } of examples) {
    it(`the guide of the test models has an example that does what it says: ${told}`, async () => {
      const messages: ModelMessage[] = [{ role: 'user', content: script }]
      let attempt = 1
      for (const [, expected] of told.matchAll(/`([^`]+)`/g)) {
        const answer = await play('', { messages, attempt }).catch((error: unknown) => error as ModelError)
        attempt = answer instanceof ModelError ? attempt + 1 : 1
        assert.equal(given(answer), expected)
        if (!(answer instanceof ModelError)) messages.push(saying(answer), ...answer.tool_calls.map(resultOf))
      }
    })
  }
  const given = (answer: ModelAnswer | ModelError): string | undefined =>
    answer instanceof ModelError ? answer.code : (answer.tool_calls[0]?.name ?? answer.text)
  const resultOf = ({ id, name }: ModelAnswer['tool_calls'][number]): ModelMessage => ({
    role: 'tool',
    content: '12:00',
    tool_call_id: id,
    tool_name: name,
  })
})
