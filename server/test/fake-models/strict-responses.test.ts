import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { tell, testCases } from './fake-model-client.ts'
import { type FakeBehaviour, type FakeModelServer, startFakeModelServer } from './fake-model-server.ts'

let server: FakeModelServer
before(async () => void (server = await startFakeModelServer()))
after(() => server.close())

const hello = { role: 'user', content: [{ type: 'input_text', text: 'Hello' }] }
const weather = (more: object = {}) => ({
  type: 'function',
  name: 'weather',
  parameters: { type: 'object', properties: { city: { type: 'string' } } },
  ...more,
})
const call = (call_id: string, more: object = {}) => ({
  type: 'function_call',
  call_id,
  name: 'weather',
  arguments: '{}',
  ...more,
})
const output = (call_id: string) => ({ type: 'function_call_output', call_id, output: 'rain' })
const format = (more: object) => ({ text: { format: { type: 'json_schema', name: 'answer', strict: true, ...more } } })
const person = {
  type: 'object',
  properties: { name: { type: 'string' } },
  required: ['name'],
  additionalProperties: false,
}
const good = { model: 'gpt-5.6', input: [hello], stream: true, store: false }

describe('Responses of OpenAI', () => {
  testCases(() => server, 'responses', good, [
    {
      title: 'A request with all that a model that reasons takes is taken.',
      body: {
        include: ['reasoning.encrypted_content'],
        reasoning: { effort: 'high', summary: 'auto' },
        tools: [weather()],
        prompt_cache_key: 'agent-1',
        service_tier: 'flex',
        max_output_tokens: 16,
        ...format({ schema: person }),
      },
    },
    {
      title: 'Calls and their results are taken.',
      body: { input: [hello, call('a'), call('b'), output('b'), output('a')] },
    },
    {
      title: 'A member that does not exist is refused.',
      body: { stop: ['x'] },
      message: `Unknown parameter: 'stop'.`,
      param: 'stop',
      code: 'unknown_parameter',
    },
    {
      title: 'What goes by another name here is refused with that name.',
      body: { reasoning_effort: 'low' },
      message:
        /^Unsupported parameter: 'reasoning_effort'. In the Responses API, this parameter has moved to 'reasoning.effort'./,
      code: 'unsupported_parameter',
    },
    {
      title: 'A member of an item that does not exist is refused.',
      body: { input: [{ ...hello, name: 'x' }] },
      message: `Unknown parameter: 'input[0].name'.`,
    },
    {
      title: 'A member of a part that does not exist is refused.',
      body: { input: [{ role: 'user', content: [{ type: 'input_text', text: 'Hi', id: 'x' }] }] },
      message: `Unknown parameter: 'input[0].content[0].id'.`,
    },
    {
      title: 'A tool in the form of Chat Completions is refused.',
      body: { tools: [{ type: 'function', function: { name: 'weather' } }] },
      message: `Unknown parameter: 'tools[0].function'.`,
    },
    {
      title: 'A part of the user in a message of the assistant is refused.',
      body: { input: [hello, { role: 'assistant', content: [{ type: 'input_text', text: 'Hi' }] }, hello] },
      message: `Invalid value: 'input_text'. Supported values are: 'output_text' and 'refusal'.`,
      param: 'input[1].content[0].type',
    },
    {
      title: 'An item without a member that it needs is refused.',
      body: { input: [hello, { type: 'reasoning', encrypted_content: 'x' }] },
      message: `Missing required parameter: 'input[1].summary'.`,
    },
    {
      title: 'An id of another kind of item is refused.',
      body: { input: [hello, call('a', { id: 'call_1' }), output('a')] },
      message: `Invalid 'input[1].id': 'call_1'. Expected an ID that begins with 'fc'.`,
    },
    {
      title: 'The same item twice is refused.',
      body: { input: [hello, call('a', { id: 'fc_1' }), call('b', { id: 'fc_1' }), output('a'), output('b')] },
      message: 'Duplicate item found with id fc_1. Remove duplicate items from your input and try again.',
    },
    {
      title: 'A result without a call is refused.',
      body: { input: [hello, output('a')] },
      message: 'No tool call found for function call output with call_id a.',
      param: 'input',
    },
    {
      title: 'A call without its result is refused at the end.',
      body: { input: [hello, call('a')] },
      message: 'No tool output found for function call a.',
    },
    {
      title: 'A call without its result is refused before the next turn.',
      body: { input: [hello, call('a'), call('b'), output('b'), call('c'), output('a'), output('c')] },
      message: 'No tool output found for function call a.',
    },
    {
      title: 'Fewer than 16 tokens of output are refused.',
      body: { max_output_tokens: 15 },
      message: `Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16, but got 15 instead.`,
      code: 'integer_below_min_value',
    },
    {
      title: 'A cache key of 65 characters is refused.',
      body: { prompt_cache_key: 'x'.repeat(65) },
      message: /^Invalid 'prompt_cache_key': string too long/,
    },
    {
      title: 'The name of a format with a sign that names do not have is refused.',
      body: format({ name: 'my answer', schema: person }),
      message: /^Invalid 'text.format.name': string does not match pattern/,
    },
    {
      title: 'A strict answer whose object is open is refused.',
      body: format({ schema: { ...person, additionalProperties: true } }),
      message: `Invalid schema for response_format 'answer': In context=(), 'additionalProperties' is required to be supplied and to be false.`,
      param: 'text.format.schema',
      code: 'invalid_json_schema',
    },
    {
      title: 'Parameters that are no object are refused.',
      body: { tools: [weather({ parameters: {} })] },
      message: `Invalid schema for function 'weather': schema must be a JSON Schema of 'type: "object"', got 'type: "None"'.`,
      param: 'tools[0].parameters',
    },
    {
      title: 'A strict function that leaves a property out is refused.',
      body: { tools: [weather({ strict: true, parameters: { ...person, required: [] } })] },
      message:
        /'required' is required to be supplied and to be an array including every key in properties. Missing 'name'.$/,
    },
    {
      title: 'A temperature is refused while the model reasons.',
      body: { temperature: 1 },
      message: `Unsupported parameter: 'temperature' is not supported with this model.`,
      param: 'temperature',
    },
    {
      title: 'A temperature is taken without effort where the model allows that.',
      body: { temperature: 0.5, reasoning: { effort: 'none' } },
    },
    {
      title: 'A temperature is refused by a model that has no effort none.',
      body: { model: 'gpt-6-astra', temperature: 0.5 },
      message: /'temperature' is not supported/,
    },
    {
      title: 'An effort that the model lacks is refused.',
      body: { model: 'gpt-5.1', reasoning: { effort: 'minimal' } },
      message: `Unsupported value: 'minimal' is not supported with the 'gpt-5.1' model. Supported values are: 'none', 'low', 'medium', and 'high'.`,
      param: 'reasoning.effort',
      code: 'unsupported_value',
    },
    {
      title: 'An effort is refused by a model that does not reason.',
      body: { model: 'gpt-4.1', reasoning: { effort: 'low' } },
      message: `Unsupported parameter: 'reasoning.effort' is not supported with this model.`,
      code: 'unsupported_parameter',
    },
    {
      title: 'Encrypted reasoning is refused by a model that does not reason.',
      body: { model: 'gpt-4.1', include: ['reasoning.encrypted_content'] },
      message: 'Encrypted content is not supported with this model.',
      param: 'include',
    },
    {
      title: 'Reasoning is refused in a request to a model that does not reason.',
      body: { model: 'gpt-4.1', input: [hello, { type: 'reasoning', summary: [], encrypted_content: 'x' }] },
      message: /^Reasoning input items can only be provided to a reasoning or computer use model./,
    },
    {
      title: 'A reference to an item is refused where nothing is stored.',
      body: { input: [hello, { type: 'item_reference', id: 'rs_0' }] },
      message:
        "Item with id 'rs_0' not found. Items are not persisted when `store` is set to false. Try again with `store` set to true, or remove this item from your input.",
      status: 404,
      param: 'input',
    },
    {
      title: 'Reasoning that the service never encrypted is refused.',
      body: {
        input: [
          hello,
          { type: 'reasoning', id: 'rs_0', summary: [], encrypted_content: 'gAAA' },
          call('a'),
          output('a'),
        ],
      },
      message:
        'The encrypted content for item rs_0 could not be verified. Reason: Encrypted content could not be decrypted or parsed.',
      code: 'invalid_encrypted_content',
    },
    {
      title: 'The answer before this one is refused where nothing is stored.',
      body: { previous_response_id: 'resp_0' },
      message: `Previous response with id 'resp_0' not found.`,
      code: 'previous_response_not_found',
    },
  ])
})

interface Item {
  type: string
  id: string
  call_id?: string
  encrypted_content?: string
  summary?: { type: string; text: string }[]
}

async function answered(more: object = {}): Promise<Item[]> {
  const { events } = await tell(server, 'responses', { ...good, include: ['reasoning.encrypted_content'], ...more })
  return events.filter(({ type }) => type === 'response.output_item.done').map(({ item }) => item as Item)
}

describe('Reasoning by Responses', () => {
  const reasoned = (): FakeBehaviour => ({
    do: 'answer',
    parts: [
      { reasoning: { summary: ['First.', 'Second.'] } },
      { text: 'Let me see.' },
      { reasoning: {} },
      { tool_call: { name: 'weather', arguments: {} } },
      { tool_call: { name: 'weather', arguments: {} } },
    ],
  })
  const asking = { reasoning: { effort: 'low', summary: 'auto' } }

  it('the fake of Responses returns reasoning in its place, encrypted or with a summary if requested', async () => {
    server.next(reasoned())
    const [first, ...others] = await answered(asking)
    assert.deepEqual(
      first?.summary?.map(({ text }) => text),
      ['First.', 'Second.'],
    )
    assert.ok(first?.encrypted_content)
    assert.deepEqual(
      others.map(({ type }) => type),
      ['message', 'reasoning', 'function_call', 'function_call'],
    )
    server.next(reasoned())
    const [plain] = await answered({ include: [] })
    assert.deepEqual([plain?.summary, plain?.encrypted_content], [[], undefined])
    server.next(reasoned())
    assert.ok((await answered({ reasoning: { effort: 'none' } })).every(({ type }) => type !== 'reasoning'))
  })

  it('the fake of Responses refuses reasoning that is missing, changed, moved or separated from its call', async () => {
    server.next(reasoned())
    const [first, said, second, one, two] = (await answered(asking)) as [Item, Item, Item, Item, Item]
    const bare = ({ id: _, ...item }: Item): object => item
    const outputs = [one, two].map(({ call_id }) => output(call_id ?? ''))
    const asks = async (...items: object[]) =>
      (await tell(server, 'responses', { ...good, input: [hello, ...items] })).error?.message
    assert.equal(await asks(first, said, second, one, two, ...outputs), undefined)
    // A client that keeps no ids may leave them out.
    assert.equal(
      await asks(bare(first), { role: 'assistant', content: 'x' }, bare(second), bare(one), bare(two), ...outputs),
      undefined,
    )

    const without = `Item '${one.id}' of type 'function_call' was provided without its required 'reasoning' item: '${second.id}'.`
    assert.equal(await asks(first, said, one, two, ...outputs), without)
    assert.equal(await asks(bare(one), bare(two), ...outputs), without.replace(one.id, one.call_id ?? ''))
    assert.equal(
      await asks(said, second, one, two, ...outputs),
      `Item '${said.id}' of type 'message' was provided without its required 'reasoning' item: '${first.id}'.`,
    )
    const torn = `Item '${first.id}' of type 'reasoning' was provided without its required following item.`
    assert.equal(await asks(first, second, one, two, ...outputs), torn)
    assert.equal(await asks(second, one, two, ...outputs, first), torn)
    const unverified = `The encrypted content for item ${first.id} could not be verified. Reason: Encrypted content could not be decrypted or parsed.`
    assert.equal(await asks({ ...first, encrypted_content: `${first.encrypted_content}=` }, said), unverified)
    assert.equal(await asks({ ...first, summary: [first.summary?.[0]] }, said), unverified)
    assert.equal(
      await asks({ ...first, encrypted_content: second.encrypted_content }, said),
      unverified.replace('could not be decrypted or parsed', 'item_id did not match the target item id'),
    )
    assert.match(
      (await asks({ ...first, encrypted_content: null }, said)) ?? '',
      /^Item with id 'rs_\d+' not found\. Items are not/,
    )
  })

  it('the fake of Responses accepts a reference to a stored item', async () => {
    server.next(reasoned())
    const [first, said] = (await answered({ store: true })) as [Item, Item]
    const reference = ({ id }: Item): object => ({ type: 'item_reference', id })
    const input = [hello, reference(first), reference(said)]
    assert.equal((await tell(server, 'responses', { ...good, store: true, input })).error?.message, undefined)
  })

  it('the fake of Responses numbers its events, and the last one has the tokens and the end', async () => {
    server.next({
      do: 'answer',
      text: 'cut',
      finish_reason: 'length',
      usage: { input_tokens: 100, output_tokens: 20, cached_tokens: 30, cache_write_tokens: 10, reasoning_tokens: 5 },
    })
    const { events } = await tell(server, 'responses', good)
    assert.deepEqual(
      events.map(({ sequence_number }) => sequence_number),
      [...events.keys()],
    )
    assert.deepEqual(
      events.map(({ type }) => type),
      [
        'response.created',
        'response.in_progress',
        'response.output_item.added',
        'response.content_part.added',
        'response.output_text.delta',
        'response.output_text.done',
        'response.content_part.done',
        'response.output_item.done',
        'response.incomplete',
      ],
    )
    const { usage, incomplete_details } = events.at(-1)!['response'] as Record<string, unknown>
    assert.deepEqual(incomplete_details, { reason: 'max_output_tokens' })
    assert.deepEqual(usage, {
      input_tokens: 100,
      input_tokens_details: { cached_tokens: 30, cache_write_tokens: 10 },
      output_tokens: 20,
      output_tokens_details: { reasoning_tokens: 5 },
      total_tokens: 120,
    })
  })

  it('the fake of Responses can fail after its answer has begun', async () => {
    server.next({ do: 'error_event', pieces: 2, error: { code: 'server_error', message: 'it broke' }, as: 'failed' })
    const failed = (await tell(server, 'responses', good)).events.at(-1)!
    assert.deepEqual([failed['type'], failed['sequence_number']], ['response.failed', 2])
    assert.deepEqual((failed['response'] as { error: object }).error, { code: 'server_error', message: 'it broke' })
  })
})
