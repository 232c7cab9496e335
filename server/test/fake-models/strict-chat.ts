import type { Refusal, StrictState } from './strict-memory.ts'
import { effortOf, openaiFacts } from './strict-model-facts.ts'
import {
  cacheBreakpoint,
  commonMembers,
  efforts,
  formatMembers,
  formatRefusal,
  functionMembers,
  functionRefusal,
  openaiName,
  openaiPath,
  openaiRefusal,
  quoted,
  refuse,
  serviceTier,
  toolChoice,
} from './strict-openai.ts'
import {
  amount,
  anything,
  anyObject,
  byKind,
  byTag,
  type Fault,
  firstFault,
  flag,
  isObject,
  list,
  object,
  type Shape,
  text,
  word,
} from './strict-shapes.ts'

const nulls = { nulls: true }
const textPart = object({ 'type!': anything, 'text!': text(), prompt_cache_breakpoint: cacheBreakpoint }, nulls)
const texts = byKind({ string: text(), array: list(byTag('type', { text: textPart }), { filled: true }) })
const userParts = byTag('type', {
  text: textPart,
  image_url: object({
    'type!': anything,
    'image_url!': object({ 'url!': text(), detail: word('auto', 'low', 'high') }),
    prompt_cache_breakpoint: cacheBreakpoint,
  }),
  input_audio: object({ 'type!': anything, 'input_audio!': anyObject, prompt_cache_breakpoint: cacheBreakpoint }),
  file: object({ 'type!': anything, 'file!': anyObject, prompt_cache_breakpoint: cacheBreakpoint }),
})
const assistantParts = byTag('type', {
  text: textPart,
  refusal: object({ 'type!': anything, 'refusal!': text() }),
})

function toolCalls(name: Shape): Shape {
  const called = object({ 'name!': name, 'arguments!': text() })
  return list(byTag('type', { function: object({ 'id!': text(), 'type!': anything, 'function!': called }) }), {
    filled: true,
  })
}

/** Messages by their role. Compatible servers know no `developer`, and take back what they reasoned. */
function messageShape(isCompatible: boolean): Shape {
  const name = text()
  return byTag('role', {
    ...(!isCompatible && { developer: object({ 'role!': anything, 'content!': texts, name }, nulls) }),
    system: object({ 'role!': anything, 'content!': texts, name }, nulls),
    user: object(
      {
        'role!': anything,
        'content!': byKind({ string: text(), array: list(userParts, { filled: true }) }),
        name,
      },
      nulls,
    ),
    assistant: object(
      {
        'role!': anything,
        content: byKind({ string: text(), array: list(assistantParts, { filled: true }) }),
        refusal: text(),
        name,
        tool_calls: toolCalls(isCompatible ? text({ filled: true }) : openaiName),
        ...(isCompatible && { reasoning_content: text(), reasoning: text() }),
        ...(!isCompatible && { audio: anyObject }),
      },
      nulls,
    ),
    tool: object({ 'role!': anything, 'content!': texts, 'tool_call_id!': text() }),
  })
}

const tool = byTag('type', { function: object({ 'type!': anything, 'function!': object(functionMembers, nulls) }) })
const responseFormat = byTag('type', {
  text: object({ 'type!': anything }),
  json_object: object({ 'type!': anything }),
  json_schema: object({ 'type!': anything, 'json_schema!': object(formatMembers, nulls) }),
})
const chosenTool = toolChoice({
  function: object({ 'type!': anything, 'function!': object({ 'name!': text() }) }),
  allowed_tools: object({ 'type!': anything, 'allowed_tools!': anyObject }),
})

/** What every server of chat completions knows. */
const sharedMembers = {
  'model!': text(),
  frequency_penalty: amount({ min: -2, max: 2 }),
  logit_bias: anyObject,
  logprobs: flag,
  max_completion_tokens: amount({ min: 1, whole: true }),
  max_tokens: amount({ min: 1, whole: true }),
  n: amount({ min: 1, max: 128, whole: true }),
  parallel_tool_calls: flag,
  presence_penalty: amount({ min: -2, max: 2 }),
  reasoning_effort: word(...efforts),
  response_format: responseFormat,
  seed: amount({ whole: true }),
  service_tier: serviceTier,
  stop: anything,
  stream: flag,
  stream_options: object({ include_usage: flag, include_obfuscation: flag }),
  temperature: amount({ min: 0, max: 2 }),
  tool_choice: chosenTool,
  tools: list(tool, { filled: true }),
  top_logprobs: amount({ min: 0, max: 20, whole: true }),
  top_p: amount({ min: 0, max: 1 }),
  user: text(),
}

const compatibleBody = object({ ...sharedMembers, 'messages!': list(messageShape(true), { filled: true }) }, nulls)
const openaiBody = object(
  {
    ...commonMembers,
    ...sharedMembers,
    'messages!': list(messageShape(false), { filled: true }),
    audio: anyObject,
    modalities: list(word('text', 'audio')),
    moderation: anyObject,
    prediction: anyObject,
    verbosity: word('low', 'medium', 'high'),
    web_search_options: anyObject,
  },
  nulls,
)

interface ChatMessage {
  role: string
  content?: unknown
  reasoning_content?: string
  tool_call_id?: string
  tool_calls?: { id: string }[] | null
}

/** What the chat completions of OpenAI, or of a server that is compatible with them, have against a request. */
export function strictChat(body: Record<string, unknown>, state: StrictState): Refusal | undefined {
  const model = String(body['model'])
  const as = state.strict_as ?? (openaiFacts(model).known ? 'openai' : 'compatible')
  const isCompatible = as === 'compatible'
  const fault = (isCompatible ? compatibleBody : openaiBody)(body, [])
  if (fault) return isCompatible ? compatibleRefusal(fault) : openaiRefusal(fault)
  return firstFault([
    () => (isCompatible ? undefined : modelRefusal(body, model)),
    () => turnsRefusal(body['messages'] as ChatMessage[]),
    () => (isCompatible ? reasoningRefusal(body['messages'] as ChatMessage[], state) : undefined),
    () => toolsRefusal(body, isCompatible),
    () => jsonRefusal(body, isCompatible),
    () =>
      body['stream_options'] != null && body['stream'] !== true
        ? refuse(`The 'stream_options' parameter is only allowed when 'stream' is enabled.`, {
            param: 'stream_options',
          })
        : undefined,
  ])
}

/** As servers say it that are strict about what they do not have; the words are Groq's, of the role DeepSeek's. */
function compatibleRefusal(fault: Fault): Refusal {
  const path = openaiPath(fault.path)
  if (fault.kind === 'unknown') return { status: 400, message: `property '${path}' is unsupported` }
  if (fault.kind === 'tag' && fault.key === 'role') {
    const roles = fault.allowed.map((role) => `\`${role}\``).join(', ')
    return refuse(
      `Failed to deserialize the JSON body into the target type: ${path}.role: unknown variant \`${fault.got}\`, expected one of ${roles}`,
      { code: 'invalid_request_error' },
    )
  }
  return openaiRefusal(fault)
}

/** What this model of OpenAI does not take on this endpoint. */
function modelRefusal(body: Record<string, unknown>, model: string): Refusal | undefined {
  const facts = openaiFacts(model)
  const effort = effortOf(body)
  const unsupported = { code: 'unsupported_parameter' }
  const said = body['reasoning_effort'] as string | null | undefined
  const { temperature, top_p } = body
  if (!facts.chat) {
    return refuse('This model is only supported in v1/responses and not in v1/chat/completions.', {
      param: 'model',
      status: 404,
    })
  }
  if (said != null && !facts.reasons) return refuse('Unrecognized request argument supplied: reasoning_effort')
  if (said != null && !facts.efforts.includes(effort)) {
    return refuse(
      `Unsupported value: 'reasoning_effort' does not support '${said}' with this model. Supported values are: ${quoted(facts.efforts)}.`,
      { param: 'reasoning_effort', code: 'unsupported_value' },
    )
  }
  if (body['tools'] != null && facts.chat_tools !== 'allowed' && said !== 'none') {
    const instead =
      facts.chat_tools === 'use responses'
        ? 'Please use /v1/responses instead.'
        : `To use function tools, use /v1/responses or set reasoning_effort to 'none'.`
    return refuse(
      `Function tools with reasoning_effort are not supported for ${model} in /v1/chat/completions. ${instead}`,
      { param: 'reasoning_effort' },
    )
  }
  if (body['max_tokens'] != null && body['max_completion_tokens'] != null) {
    return refuse(`Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported.`)
  }
  if (!facts.reasons) return undefined
  if (body['max_tokens'] != null) {
    return refuse(
      `Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.`,
      { param: 'max_tokens', ...unsupported },
    )
  }
  if (effort === 'none' && facts.samples_without_effort) return undefined
  if (temperature != null && temperature !== 1) {
    return refuse(
      `Unsupported value: 'temperature' does not support ${JSON.stringify(temperature)} with this model. Only the default (1) value is supported.`,
      { param: 'temperature', code: 'unsupported_value' },
    )
  }
  const dropped = ['top_p', 'presence_penalty', 'frequency_penalty', 'logprobs', 'top_logprobs', 'logit_bias'].find(
    (name) => (name === 'top_p' ? top_p != null && top_p !== 1 : body[name] != null),
  )
  return dropped === undefined
    ? undefined
    : refuse(`Unsupported parameter: '${dropped}' is not supported with this model.`, {
        param: dropped,
        ...unsupported,
      })
}

/** Calls and their results: each result right after the turn that called, and none missing. */
function turnsRefusal(messages: ChatMessage[]): Refusal | undefined {
  let open = new Set<string>()
  let calls = new Set<string>()
  for (const [at, message] of messages.entries()) {
    if (message.role === 'tool') {
      if (!calls.has(message.tool_call_id ?? '')) {
        return refuse(
          `Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.`,
          { param: `messages.[${at}].role` },
        )
      }
      open.delete(message.tool_call_id ?? '')
      continue
    }
    if (open.size > 0) return unanswered(open, at)
    calls = new Set((message.tool_calls ?? []).map(({ id }) => id))
    open = new Set(calls)
    if (message.role === 'assistant' && message.content == null && calls.size === 0) {
      return refuse(`Invalid value for 'content': expected a string, got null.`, { param: `messages.[${at}].content` })
    }
  }
  return open.size > 0 ? unanswered(open, messages.length) : undefined
}

function unanswered(open: Set<string>, at: number): Refusal {
  return refuse(
    `An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: ${[...open].join(', ')}`,
    { param: `messages.[${at}].role` },
  )
}

/**
 * Servers that reason, such as DeepSeek's, want back what was reasoned while a tool loop goes on. The real ones see only
 * that it is missing; this one also sees that it was changed.
 */
function reasoningRefusal(messages: ChatMessage[], { memory }: StrictState): Refusal | undefined {
  const asked = messages.findLastIndex(({ role }) => role === 'user')
  const at = messages.findIndex(({ tool_calls, reasoning_content }, at) => {
    const [first] = tool_calls ?? []
    const produced = first && memory.contents.get(first.id)
    return at > asked && produced !== undefined && produced !== reasoning_content
  })
  if (at === -1) return undefined
  return refuse(
    `Missing \`reasoning_content\` field in the assistant message at message index ${at}. For more information, please refer to https://api-docs.deepseek.com/guides/thinking_mode#tool-calls`,
    { code: 'invalid_request_error' },
  )
}

function toolsRefusal(body: Record<string, unknown>, isCompatible: boolean): Refusal | undefined {
  const tools = (body['tools'] ?? []) as {
    function: { name: string; parameters?: Record<string, unknown> | null; strict?: boolean }
  }[]
  const choice = body['tool_choice']
  const only = ['tool_choice', 'parallel_tool_calls'].find((name) => body[name] != null && tools.length === 0)
  if (only !== undefined && choice !== 'none') {
    return refuse(`Invalid value for '${only}': '${only}' is only allowed when 'tools' are specified.`, { param: only })
  }
  const named = isObject(choice) && isObject(choice['function']) ? choice['function']['name'] : undefined
  if (named !== undefined && !tools.some((one) => one.function.name === named)) {
    return refuse(`Tool choice 'function' not found in 'tools' parameter.`, { param: 'tool_choice' })
  }
  return firstFault(
    // A compatible server looks no further than the root of a schema.
    tools.map(({ function: one }, at) => () => {
      const looser = { name: one.name, parameters: one.parameters && { properties: {}, type: one.parameters['type'] } }
      return functionRefusal(isCompatible ? looser : one, `tools[${at}].function.parameters`)
    }),
  )
}

function jsonRefusal(body: Record<string, unknown>, isCompatible: boolean): Refusal | undefined {
  const format = body['response_format'] as { type: string; json_schema?: Record<string, unknown> } | null | undefined
  if (format?.json_schema && !isCompatible) {
    return formatRefusal(format.json_schema, { param: 'response_format', code: null })
  }
  if (format?.type === 'json_object' && !/json/i.test(JSON.stringify(body['messages']))) {
    return refuse(
      `'messages' must contain the word 'json' in some form, to use 'response_format' of type 'json_object'.`,
      {
        param: 'messages',
      },
    )
  }
  return undefined
}
