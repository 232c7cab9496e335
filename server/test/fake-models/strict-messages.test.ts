import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { tell, testCases } from './fake-model-client.ts'
import { type FakeModelServer, startFakeModelServer } from './fake-model-server.ts'

let server: FakeModelServer
before(async () => void (server = await startFakeModelServer()))
after(() => server.close())

const hello = { role: 'user', content: 'Hello' }
const mark = { cache_control: { type: 'ephemeral' } }
const tool = (more: object = {}) => ({
  name: 'weather',
  description: 'The weather.',
  input_schema: { type: 'object', properties: { city: { type: 'string' } } },
  ...more,
})
const use = (id: string) => ({ type: 'tool_use', id, name: 'weather', input: {} })
const result = (tool_use_id: string, more: object = {}) => ({
  type: 'tool_result',
  tool_use_id,
  content: 'rain',
  ...more,
})
const text = (text: string, more: object = {}) => ({ type: 'text', text, ...more })
const user = (...content: object[]) => ({ role: 'user', content })
const assistant = (...content: object[]) => ({ role: 'assistant', content })
const format = (schema: object) => ({ output_config: { format: { type: 'json_schema', schema } } })
const effort = (effort: string) => ({ output_config: { effort } })
const good = { model: 'claude-opus-4-8', max_tokens: 2000, messages: [hello], stream: true }

describe('Messages of Anthropic', () => {
  testCases(() => server, 'messages', good, [
    {
      title: 'A request with all that a newer model takes is taken.',
      body: {
        system: [text('Be short.', mark)],
        tools: [tool(mark)],
        thinking: { type: 'adaptive', display: 'summarized' },
        ...effort('max'),
        service_tier: 'standard_only',
        metadata: { user_id: 'x' },
        messages: [
          hello,
          hello,
          assistant(text('Hm.'), use('a'), use('b')),
          user(result('b'), result('a'), text('And?')),
        ],
      },
    },
    {
      title: 'A member that does not exist is refused.',
      body: { prompt_cache_key: 'x' },
      message: 'prompt_cache_key: Extra inputs are not permitted',
    },
    {
      title: 'A member of a message that does not exist is refused.',
      body: { messages: [{ ...hello, ...mark }] },
      message: 'messages.0.cache_control: Extra inputs are not permitted',
    },
    {
      title: 'A member of a block that does not exist is refused.',
      body: { messages: [user(text('Hi', { id: 'x' }))] },
      message: 'messages.0.content.0.text.id: Extra inputs are not permitted',
    },
    {
      title: 'A member of a tool that does not exist is refused.',
      body: { tools: [tool({ parameters: {} })] },
      message: 'tools.0.custom.parameters: Extra inputs are not permitted',
    },
    {
      title: 'A block of a type that does not exist is refused.',
      body: { messages: [user({ type: 'input_text', text: 'Hi' })] },
      message:
        /^messages\.0\.content\.0: Input tag 'input_text' found using 'type' does not match any of the expected tags: 'text', /,
    },
    {
      title: 'A request without max_tokens is refused.',
      body: { max_tokens: undefined },
      message: 'max_tokens: Field required',
    },
    {
      title: 'A max_tokens in words is refused.',
      body: { max_tokens: 'many' },
      message: 'max_tokens: Input should be a valid integer',
    },
    {
      title: 'More tokens than the model can give are refused.',
      body: { model: 'claude-sonnet-4-5', max_tokens: 100_000 },
      message: 'max_tokens: 100000 > 64000, which is the maximum allowed number of output tokens for claude-sonnet-4-5',
    },
    {
      title: 'A system message among the messages is refused.',
      body: { messages: [{ role: 'system', content: 'Be short.' }, hello] },
      message:
        'messages: Unexpected role "system". The Messages API accepts a top-level `system` parameter, not "system" as an input message role.',
    },
    {
      title: 'A conversation that the assistant begins is refused.',
      body: { messages: [assistant(text('Hi')), hello] },
      message: 'messages: first message must use the "user" role',
    },
    {
      title: 'An empty message is refused.',
      body: { messages: [hello, assistant(), hello] },
      message: 'messages.1: all messages must have non-empty content except for the optional final assistant message',
    },
    {
      title: 'An empty text is refused.',
      body: { messages: [user(text(''))] },
      message: 'messages: text content blocks must be non-empty',
    },
    {
      title: 'A conversation that ends with the assistant is refused by newer models.',
      body: { messages: [hello, assistant(text('Hi'))] },
      message: 'This model does not support assistant message prefill. The conversation must end with a user message.',
    },
    {
      title: 'A beginning of an answer that ends with a space is refused by older models.',
      body: { model: 'fake-1', messages: [hello, assistant(text('Hi '))] },
      message: 'messages: final assistant content cannot end with trailing whitespace',
    },
    {
      title: 'A failed result without content is refused.',
      body: { messages: [hello, assistant(use('a')), user({ ...result('a'), content: '', is_error: true })] },
      message: 'messages.2: content cannot be empty if `is_error` is true',
    },
    {
      title: 'A call without its result is refused.',
      body: { messages: [hello, assistant(use('a'), use('b')), user(result('a'))] },
      message:
        'messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: b. Each `tool_use` block must have a corresponding `tool_result` block in the next message.',
    },
    {
      title: 'A result that does not come first is refused.',
      body: { messages: [hello, assistant(use('a')), user(text('Here:'), result('a'))] },
      message: /^messages\.1: `tool_use` ids were found without `tool_result` blocks immediately after: a\./,
    },
    {
      title: 'A result without a call is refused.',
      body: { messages: [hello, assistant(text('Hm.')), user(result('a'))] },
      message:
        'messages.2.content.0: unexpected `tool_use_id` found in `tool_result` blocks: a. Each `tool_result` block must have a corresponding `tool_use` block in the previous message.',
    },
    {
      title: 'Two results of a call are refused.',
      body: { messages: [hello, assistant(use('a')), user(result('a'), result('a'))] },
      message:
        'messages.2.content.1: each tool_use must have a single result. Found multiple `tool_result` blocks with id: a',
    },
    {
      title: 'A call whose input is no object is refused.',
      body: { messages: [hello, assistant({ ...use('a'), input: '{}' }), user(result('a'))] },
      message: 'messages.1.content.0.tool_use.input: Input should be a valid dictionary',
    },
    {
      title: 'The name of a tool with a sign that names do not have is refused.',
      body: { tools: [tool({ name: 'shop/weather' })] },
      message: "tools.0.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'",
    },
    {
      title: 'Two tools of one name are refused.',
      body: { tools: [tool(), tool()] },
      message: 'tools: Tool names must be unique.',
    },
    {
      title: 'An input schema of no object is refused.',
      body: { tools: [tool({ input_schema: { type: 'array' } })] },
      message: "tools.0.custom.input_schema.type: Input should be 'object'",
    },
    {
      title: 'An input schema that is a choice is refused.',
      body: { tools: [tool({ input_schema: { type: 'object', anyOf: [{}] } })] },
      message: 'tools.0.custom.input_schema: input_schema does not support oneOf, allOf, or anyOf at the top level',
    },
    {
      title: 'A property with a sign that names do not have is refused.',
      body: { tools: [tool({ input_schema: { type: 'object', properties: { 'a b': {} } } })] },
      message: "tools.0.custom.input_schema.properties: Property keys should match pattern '^[a-zA-Z0-9_.-]{1,64}$'",
    },
    {
      title: 'A fifth cache mark is refused.',
      body: {
        system: [text('Be short.', mark)],
        tools: [tool(mark)],
        messages: [user(text('a', mark), text('b', mark), text('c', mark))],
      },
      message: 'A maximum of 4 blocks with cache_control may be provided. Found 5.',
    },
    {
      title: 'A cache mark on an empty text is refused.',
      body: { messages: [user(text('', mark))] },
      message: 'messages.0.content.0.text: cache_control cannot be set for empty text blocks',
    },
    {
      title: 'A cache mark on thinking is refused.',
      body: { messages: [hello, assistant({ type: 'thinking', thinking: '', signature: 'x', ...mark }), hello] },
      message: 'messages.1.content.0.thinking.cache_control: Extra inputs are not permitted',
    },
    {
      title: 'A cache mark of an hour after one of five minutes is refused.',
      body: {
        system: [text('Be short.', mark)],
        messages: [user(text('a', { cache_control: { type: 'ephemeral', ttl: '1h' } }))],
      },
      message:
        /^messages\.0\.content\.0\.text\.cache_control\.ttl: a ttl='1h' cache_control block must not come after a ttl='5m'/,
    },
    ...['claude-opus-4-7', 'claude-sonnet-5', 'claude-fable-5', 'claude-haiku-5-5'].map((model) => ({
      title: `A temperature is refused by ${model}.`,
      body: { model, temperature: 0.5 },
      message: '`temperature` is deprecated for this model.',
    })),
    { title: 'A temperature is taken by an older model.', body: { model: 'claude-opus-4-6', temperature: 0.5 } },
    {
      title: 'A temperature other than 1 is refused while an older model thinks.',
      body: { model: 'claude-opus-4-6', temperature: 0.5, thinking: { type: 'adaptive' } },
      message: /^`temperature` may only be set to 1 when thinking is enabled or in adaptive mode\./,
    },
    {
      title: 'A temperature above 1 is refused.',
      body: { model: 'claude-opus-4-6', temperature: 1.5 },
      message: 'temperature: range: 0..1',
    },
    {
      title: 'A budget of fewer than 1024 tokens is refused.',
      body: { model: 'fake-1', thinking: { type: 'enabled', budget_tokens: 1000 } },
      message: 'thinking.enabled.budget_tokens: Input should be greater than or equal to 1024',
    },
    {
      title: 'A budget of no fewer tokens than the answer has is refused.',
      body: { model: 'fake-1', thinking: { type: 'enabled', budget_tokens: 2000 } },
      message: /^`max_tokens` must be greater than `thinking.budget_tokens`\./,
    },
    {
      title: 'A budget is refused by models that think adaptively only.',
      body: { thinking: { type: 'enabled', budget_tokens: 1024 } },
      message:
        '"thinking.type.enabled" is not supported for this model. Use "thinking.type.adaptive" and "output_config.effort" to control thinking behavior.',
    },
    {
      title: 'Adaptive thinking is refused by models that think by a budget only.',
      body: { model: 'claude-sonnet-4-5', thinking: { type: 'adaptive' } },
      message: 'adaptive thinking is not supported on this model',
    },
    {
      title: 'Thinking cannot be switched off where a model always thinks.',
      body: { model: 'claude-opus-5-5', thinking: { type: 'disabled' } },
      message: /^"thinking.type.disabled" is not supported for this model\./,
    },
    {
      title: 'Thinking cannot be switched off at the highest efforts of some models.',
      body: { model: 'claude-opus-5', thinking: { type: 'disabled' }, ...effort('xhigh') },
      message:
        "output_config.effort 'xhigh' is not supported when thinking is disabled on this model. Use effort 'high' or below, or enable thinking.",
    },
    {
      title: 'An effort is refused by models that have none.',
      body: { model: 'claude-haiku-4-5', ...effort('low') },
      message: 'This model does not support the effort parameter.',
    },
    {
      title: 'An effort that the model lacks is refused.',
      body: { model: 'claude-opus-4-6', ...effort('xhigh') },
      message: /^This model does not support effort level 'xhigh'\./,
    },
    {
      title: 'An effort that no model has is refused.',
      body: effort('minimal'),
      message: "output_config.effort: Input should be 'low', 'medium', 'high', 'xhigh' or 'max'",
    },
    {
      title: 'A service tier of another provider is refused.',
      body: { service_tier: 'flex' },
      message: "service_tier: Input should be 'auto' or 'standard_only'",
    },
    {
      title: 'A forced call is refused while thinking is on.',
      body: { tools: [tool()], tool_choice: { type: 'any' }, thinking: { type: 'adaptive' } },
      message: 'Thinking may not be enabled when tool_choice forces tool use.',
    },
    {
      title: 'A forced call is refused by models that cannot be forced.',
      body: { model: 'claude-opus-5-5', tools: [tool()], tool_choice: { type: 'tool', name: 'weather' } },
      message: 'tool_choice: type "tool" and "any" are not supported for this model.',
    },
    {
      title: 'A closed schema of an answer is taken.',
      body: format({ type: 'object', properties: {}, additionalProperties: false }),
    },
    {
      title: 'An open object in the schema of an answer is refused.',
      body: format({ type: 'array', items: { type: 'object' } }),
      message: "output_config.format.schema: For 'object' type, 'additionalProperties' must be explicitly set to false",
    },
    {
      title: 'Keywords that schemas of answers do not have are refused.',
      body: format({ type: 'integer', minimum: 1, maximum: 2 }),
      message: "output_config.format.schema: For 'integer' type, properties maximum, minimum are not supported",
    },
    {
      title: 'A schema that contains itself is refused.',
      body: format({ $ref: '#/$defs/node', $defs: { node: { type: 'array', items: { $ref: '#/$defs/node' } } } }),
      message: 'output_config.format.schema: Circular reference detected in schema definitions: node -> node',
    },
    {
      title: 'A schema of an answer is refused by models without structured outputs.',
      body: { model: 'claude-opus-4-0', ...format({ type: 'string' }) },
      message: "'claude-opus-4-0' does not support output format.",
    },
  ])

  it('the fake of Messages refuses a request without its headers', async () => {
    const none = await tell(server, 'messages', good, {})
    assert.deepEqual([none.status, none.error?.type], [401, 'authentication_error'])
    assert.equal(none.error?.message, 'x-api-key header is required')
    const old = await tell(server, 'messages', good, { 'x-api-key': 'sk-fake' })
    assert.equal(old.error?.message, 'anthropic-version: header is required')
  })
})
