import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { tell, testCases } from './fake-model-client.ts'
import { type FakeModelServer, startFakeModelServer } from './fake-model-server.ts'

let server: FakeModelServer
before(async () => void (server = await startFakeModelServer()))
after(() => server.close())

const hello = { role: 'user', content: 'Hello' }
const stream = { stream: true, stream_options: { include_usage: true } }
const weather = (
  more: object = {},
  parameters: object = { type: 'object', properties: { city: { type: 'string' } } },
) => ({
  type: 'function',
  function: { name: 'weather', description: 'The weather.', parameters, ...more },
})
const call = (id: string, name = 'weather') => ({ id, type: 'function', function: { name, arguments: '{}' } })
const asked = (...ids: string[]) => ({ role: 'assistant', content: null, tool_calls: ids.map((id) => call(id)) })
const result = (tool_call_id: string) => ({ role: 'tool', tool_call_id, content: 'rain' })
const json = (schema: object, strict = true) => ({
  response_format: { type: 'json_schema', json_schema: { name: 'answer', schema, strict } },
})
const person = {
  type: 'object',
  properties: { name: { type: 'string' } },
  required: ['name'],
  additionalProperties: false,
}

describe('Chat Completions of OpenAI', () => {
  testCases(() => server, 'chat/completions', { model: 'gpt-4.1', messages: [hello], ...stream }, [
    { title: 'A plain request is taken.', body: {} },
    {
      title: 'A conversation with calls and their results is taken.',
      body: { messages: [hello, asked('a', 'b'), result('b'), result('a'), hello], tools: [weather()] },
    },
    {
      title: 'A member that does not exist is refused.',
      body: { top_k: 5 },
      message: `Unknown parameter: 'top_k'.`,
      param: 'top_k',
      code: 'unknown_parameter',
    },
    {
      title: 'A member of a message that does not exist is refused.',
      body: { messages: [{ ...hello, id: 'x' }] },
      message: `Unknown parameter: 'messages[0].id'.`,
    },
    {
      title: 'Reasoning of another kind of server is refused in a message.',
      body: { messages: [hello, { role: 'assistant', content: 'Hi', reasoning_content: 'hm' }, hello] },
      message: `Unknown parameter: 'messages[1].reasoning_content'.`,
    },
    {
      title: 'A member of a part that does not exist is refused.',
      body: { messages: [{ role: 'user', content: [{ type: 'text', text: 'Hi', cache_control: {} }] }] },
      message: `Unknown parameter: 'messages[0].content[0].cache_control'.`,
    },
    {
      title: 'A member of a tool that does not exist is refused.',
      body: { tools: [weather({ input_schema: {} })] },
      message: `Unknown parameter: 'tools[0].function.input_schema'.`,
    },
    {
      title: 'A request without messages is refused.',
      body: { messages: undefined },
      message: `Missing required parameter: 'messages'.`,
      code: 'missing_required_parameter',
    },
    {
      title: 'A request of no messages is refused.',
      body: { messages: [] },
      message: `Invalid 'messages': empty array. Expected an array with minimum length 1, but got an empty array instead.`,
      code: 'empty_array',
    },
    {
      title: 'A temperature in words is refused.',
      body: { temperature: 'warm' },
      message: `Invalid type for 'temperature': expected a decimal, but got a string instead.`,
      code: 'invalid_type',
    },
    {
      title: 'A temperature above 2 is refused.',
      body: { temperature: 3 },
      message: `Invalid 'temperature': decimal above maximum value. Expected a value <= 2, but got 3 instead.`,
      code: 'decimal_above_max_value',
    },
    {
      title: 'A role that does not exist is refused.',
      body: { messages: [{ role: 'person', content: 'Hi' }] },
      message: `Invalid value: 'person'. Supported values are: 'developer', 'system', 'user', 'assistant', and 'tool'.`,
      param: 'messages[0].role',
    },
    {
      title: 'A message of the assistant that says and calls nothing is refused.',
      body: { messages: [hello, { role: 'assistant', content: null }, hello] },
      message: `Invalid value for 'content': expected a string, got null.`,
    },
    {
      title: 'An empty list of calls is refused.',
      body: { messages: [hello, { role: 'assistant', content: 'Hi', tool_calls: [] }, hello] },
      message: /^Invalid 'messages\[1\].tool_calls': empty array/,
    },
    {
      title: 'The name of a tool with a sign that names do not have is refused.',
      body: { tools: [weather({ name: 'shop/weather' })] },
      message: `Invalid 'tools[0].function.name': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.`,
      code: 'invalid_value',
    },
    {
      title: 'The name of a tool of 65 characters is refused.',
      body: { tools: [weather({ name: 'x'.repeat(65) })] },
      message: /string too long. Expected a string with maximum length 64, but got a string with length 65 instead.$/,
    },
    {
      title: 'Parameters that are no object are refused.',
      body: { tools: [weather({}, { type: 'array', items: {} })] },
      message: `Invalid schema for function 'weather': schema must be a JSON Schema of 'type: "object"', got 'type: "array"'.`,
      param: 'tools[0].function.parameters',
      code: 'invalid_function_parameters',
    },
    {
      title: 'A list without a schema of its elements is refused, in a union of types too.',
      body: { tools: [weather({}, { type: 'object', properties: { body: { type: ['string', 'array'] } } })] },
      message: `Invalid schema for function 'weather': In context=('properties', 'body', 'type', '1'), array schema missing items.`,
    },
    {
      title: 'A strict function whose object is open is refused.',
      body: { tools: [weather({ strict: true })] },
      message: `Invalid schema for function 'weather': In context=(), 'additionalProperties' is required to be supplied and to be false.`,
    },
    {
      title: 'A result without a call is refused.',
      body: { messages: [hello, result('a')] },
      message: `Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.`,
      param: 'messages.[1].role',
    },
    {
      title: 'A result of a call of an earlier turn is refused.',
      body: { messages: [hello, asked('a'), result('a'), hello, result('a')] },
      message: /must be a response to a preceeding message/,
    },
    {
      title: 'A call without its result is refused.',
      body: { messages: [hello, asked('a', 'b'), result('a'), hello] },
      message: `An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: b`,
    },
    {
      title: 'A choice among tools without tools is refused.',
      body: { tool_choice: 'auto' },
      message: `Invalid value for 'tool_choice': 'tool_choice' is only allowed when 'tools' are specified.`,
    },
    {
      title: 'The choice of a tool that is not there is refused.',
      body: { tools: [weather()], tool_choice: { type: 'function', function: { name: 'other' } } },
      message: `Tool choice 'function' not found in 'tools' parameter.`,
    },
    { title: 'A closed schema of an answer is taken.', body: json(person) },
    { title: 'An open schema of an answer is taken where it is not strict.', body: json({ type: 'object' }, false) },
    {
      title: 'An open object in a strict answer is refused at every level.',
      body: json({ ...person, properties: { name: { type: 'object', properties: {}, required: [] } } }),
      message: `Invalid schema for response_format 'answer': In context=('properties', 'name'), 'additionalProperties' is required to be supplied and to be false.`,
      param: 'response_format',
      code: null,
    },
    {
      title: 'A property of a strict answer that is not required is refused.',
      body: json({ ...person, required: [] }),
      message: `Invalid schema for response_format 'answer': In context=(), 'required' is required to be supplied and to be an array including every key in properties. Missing 'name'.`,
    },
    {
      title: 'A keyword that strict answers do not have is refused.',
      body: json({ ...person, properties: { name: { type: 'string', minLength: 1 } } }),
      message: `Invalid schema for response_format 'answer': In context=('properties', 'name'), 'minLength' is not permitted.`,
    },
    {
      title: 'An answer in JSON is refused where no message mentions it.',
      body: { response_format: { type: 'json_object' } },
      message: `'messages' must contain the word 'json' in some form, to use 'response_format' of type 'json_object'.`,
    },
    {
      title: 'A service tier that does not exist is refused.',
      body: { service_tier: 'fast' },
      message: `Invalid value: 'fast'. Supported values are: 'auto', 'default', 'flex', and 'priority'.`,
      param: 'service_tier',
    },
    {
      title: 'A cache key of 65 characters is refused.',
      body: { prompt_cache_key: 'x'.repeat(65) },
      message: `Invalid 'prompt_cache_key': string too long. Expected a string with maximum length 64, but got a string with length 65 instead.`,
      code: 'string_above_max_length',
    },
    {
      title: 'Options of a stream are refused without a stream.',
      body: { stream: false },
      message: `The 'stream_options' parameter is only allowed when 'stream' is enabled.`,
    },
    {
      title: 'An effort is refused for a model that does not reason.',
      body: { reasoning_effort: 'none' },
      message: 'Unrecognized request argument supplied: reasoning_effort',
      param: null,
      code: null,
    },
    { title: 'A model that reasons takes max_completion_tokens.', body: { model: 'o3', max_completion_tokens: 50 } },
    {
      title: 'A model that reasons refuses max_tokens.',
      body: { model: 'o4-mini', max_tokens: 50 },
      message: `Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.`,
      code: 'unsupported_parameter',
    },
    {
      title: 'A model that reasons refuses a temperature other than 1.',
      body: { model: 'gpt-5', temperature: 0.5 },
      message: `Unsupported value: 'temperature' does not support 0.5 with this model. Only the default (1) value is supported.`,
      code: 'unsupported_value',
    },
    {
      title: 'A temperature is taken without effort where the model allows that.',
      body: { model: 'gpt-5.6', temperature: 0.5, reasoning_effort: 'none' },
    },
    {
      title: 'An effort that the model lacks is refused.',
      body: { model: 'gpt-5-mini', reasoning_effort: 'xhigh' },
      message: `Unsupported value: 'reasoning_effort' does not support 'xhigh' with this model. Supported values are: 'minimal', 'low', 'medium', and 'high'.`,
      param: 'reasoning_effort',
    },
    {
      title: 'Tools are refused for a GPT-5.6 that reasons, even where the request does not say so.',
      body: { model: 'gpt-5.6-terra', tools: [weather()] },
      message: `Function tools with reasoning_effort are not supported for gpt-5.6-terra in /v1/chat/completions. To use function tools, use /v1/responses or set reasoning_effort to 'none'.`,
      param: 'reasoning_effort',
      code: null,
    },
    {
      title: 'Tools are refused for a GPT-5.4 that reasons.',
      body: { model: 'gpt-5.4', tools: [weather()], reasoning_effort: 'low' },
      message: `Function tools with reasoning_effort are not supported for gpt-5.4 in /v1/chat/completions. Please use /v1/responses instead.`,
    },
    {
      title: 'Tools are taken from a GPT-5.6 that does not reason.',
      body: { model: 'gpt-5.6', tools: [weather()], reasoning_effort: 'none' },
    },
    {
      title: 'A model that is served by Responses only is refused.',
      body: { model: 'gpt-5-codex' },
      message: 'This model is only supported in v1/responses and not in v1/chat/completions.',
      status: 404,
    },
  ])
})

describe('Chat Completions of a server that is compatible', () => {
  testCases(() => server, 'chat/completions', { model: 'fake-1', messages: [hello], ...stream }, [
    {
      title: 'What compatible servers commonly know is taken.',
      body: { max_tokens: 50, temperature: 0.2, reasoning_effort: 'low', service_tier: 'flex', ...json(person) },
    },
    ...['prompt_cache_key', 'store', 'metadata', 'prediction'].map((name) => ({
      title: `What only OpenAI has is refused: ${name}.`,
      body: { [name]: name === 'store' ? false : name === 'prompt_cache_key' ? 'x' : {} },
      message: `property '${name}' is unsupported`,
    })),
    {
      title: 'The role of a developer is refused.',
      body: { messages: [{ role: 'developer', content: 'Be short.' }, hello] },
      message: /unknown variant `developer`, expected one of `system`, `user`, `assistant`, `tool`$/,
    },
    {
      title: 'What the assistant reasoned elsewhere may come along.',
      body: { messages: [hello, { role: 'assistant', content: 'Hi', reasoning_content: 'hm' }, hello] },
    },
    {
      title: 'A call without its result is refused by any server.',
      body: { messages: [hello, asked('a'), hello] },
      message: /did not have response messages: a$/,
    },
  ])

  it('the fake of Chat Completions requires reasoning before a call unchanged until the next message of the user', async () => {
    server.next({
      do: 'answer',
      reasoning: [{ text: 'I must look.' }],
      tool_calls: [{ name: 'weather', arguments: {} }],
    })
    const first = await tell(server, 'chat/completions', { model: 'fake-reasoner', messages: [hello], ...stream })
    const deltas = first.events.flatMap(({ choices }) =>
      (choices as { delta: { reasoning_content?: string; tool_calls?: { id?: string }[] } }[]).map(
        ({ delta }) => delta,
      ),
    )
    const reasoning_content = deltas.map((delta) => delta.reasoning_content ?? '').join('')
    assert.equal(reasoning_content, 'I must look.')
    const id = deltas.flatMap((delta) => delta.tool_calls?.[0]?.id ?? [])[0] ?? assert.fail()
    const next = (more: object, ...last: object[]) =>
      tell(server, 'chat/completions', {
        model: 'fake-reasoner',
        messages: [hello, { ...asked(id), ...more }, result(id), ...last],
        ...stream,
      })
    assert.equal((await next({ reasoning_content })).status, 200)
    assert.match((await next({})).error?.message ?? '', /^Missing `reasoning_content` field .* at message index 1\./)
    assert.equal((await next({ reasoning_content: 'I must look' })).status, 400)
    assert.equal((await next({}, { role: 'assistant', content: 'Rain.' }, hello)).status, 200)
  })

  it('the fake of Chat Completions serves the dialect that a test sets, whatever the name of the model', async () => {
    const store = { model: 'fake-1', messages: [hello], store: false, ...stream }
    server.strict_as = 'openai'
    assert.equal((await tell(server, 'chat/completions', store)).status, 200)
    server.strict_as = undefined
    assert.equal((await tell(server, 'chat/completions', store)).status, 400)
  })
})
