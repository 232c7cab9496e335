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
  openaiRefusal,
  quoted,
  refuse,
  toolChoice,
} from './strict-openai.ts'
import { type InputItem, itemsRefusal } from './strict-responses-items.ts'
import {
  amount,
  anything,
  anyObject,
  byKind,
  byTag,
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
const inputParts = byTag('type', {
  input_text: object({ 'type!': anything, 'text!': text(), prompt_cache_breakpoint: cacheBreakpoint }, nulls),
  input_image: object(
    {
      'type!': anything,
      image_url: text(),
      file_id: text(),
      detail: word('auto', 'low', 'high', 'original'),
      prompt_cache_breakpoint: cacheBreakpoint,
    },
    nulls,
  ),
  input_file: object(
    {
      'type!': anything,
      file_url: text(),
      file_id: text(),
      filename: text(),
      file_data: text(),
      prompt_cache_breakpoint: cacheBreakpoint,
    },
    nulls,
  ),
})
const outputParts = byTag('type', {
  output_text: object(
    { 'type!': anything, 'text!': text(), annotations: list(anyObject), logprobs: list(anyObject) },
    nulls,
  ),
  refusal: object({ 'type!': anything, 'refusal!': text() }),
})
const status = word('in_progress', 'completed', 'incomplete')
const callId = text({ filled: true, max: 64 })

/** An id that the service gave to an item: each kind of item has its own beginning. */
function itemId(prefix: string): Shape {
  return (value, path) => {
    const fault = text({ max: 64 })(value, path)
    if (fault || String(value).startsWith(prefix)) return fault
    return { kind: 'pattern', pattern: `^${prefix}`, got: String(value), path }
  }
}

function message(role: string, parts: Shape, more: Record<string, Shape> = {}): Shape {
  return object(
    {
      type: word('message'),
      'role!': word(role),
      'content!': byKind({ string: text(), array: list(parts) }),
      id: itemId('msg'),
      status,
      ...more,
    },
    nulls,
  )
}

const messages = byTag('role', {
  assistant: message('assistant', outputParts, { phase: word('commentary', 'final_answer') }),
  developer: message('developer', inputParts),
  system: message('system', inputParts),
  user: message('user', inputParts),
})
const items = byTag(
  'type',
  {
    message: messages,
    function_call: object(
      {
        'type!': anything,
        'call_id!': callId,
        'name!': openaiName,
        'arguments!': text(),
        id: itemId('fc'),
        status,
        namespace: text(),
        async: flag,
        caller: anyObject,
      },
      nulls,
    ),
    function_call_output: object(
      {
        'type!': anything,
        'call_id!': callId,
        'output!': byKind({ string: text(), array: list(inputParts) }),
        id: itemId('fc'),
        status,
        caller: anyObject,
      },
      nulls,
    ),
    reasoning: object(
      {
        'type!': anything,
        id: itemId('rs'),
        'summary!': list(object({ 'type!': word('summary_text'), 'text!': text() })),
        encrypted_content: text(),
        content: list(anyObject),
        status,
      },
      nulls,
    ),
    item_reference: object({ 'type!': anything, 'id!': text({ filled: true }) }),
  },
  { fallback: 'message' },
)

const body = object(
  {
    ...commonMembers,
    'model!': text(),
    'input!': byKind({ string: text(), array: list(items) }),
    background: flag,
    context_management: anything,
    conversation: anything,
    include: list(
      word(
        'file_search_call.results',
        'web_search_call.results',
        'web_search_call.action.sources',
        'message.input_image.image_url',
        'computer_call_output.output.image_url',
        'code_interpreter_call.outputs',
        'reasoning.encrypted_content',
        'message.output_text.logprobs',
      ),
    ),
    instructions: text(),
    max_output_tokens: amount({ min: 16, whole: true }),
    max_tool_calls: amount({ min: 1, whole: true }),
    moderation: anyObject,
    previous_response_id: itemId('resp'),
    prompt: anyObject,
    reasoning: object(
      {
        effort: word(...efforts),
        summary: word('auto', 'concise', 'detailed'),
        generate_summary: word('auto', 'concise', 'detailed'),
        mode: word('standard', 'pro'),
        context: text(),
      },
      nulls,
    ),
    stream_options: object({ include_obfuscation: flag }),
    temperature: amount({ min: 0, max: 2 }),
    text: object(
      {
        format: byTag('type', {
          text: object({ 'type!': anything }),
          json_object: object({ 'type!': anything }),
          json_schema: object({ 'type!': anything, ...formatMembers, 'schema!': anyObject }, nulls),
        }),
        verbosity: word('low', 'medium', 'high'),
      },
      nulls,
    ),
    tool_choice: toolChoice({
      function: object({ 'type!': anything, 'name!': text() }),
      allowed_tools: object({ 'type!': anything, 'mode!': word('auto', 'required'), 'tools!': list(anyObject) }),
    }),
    tools: list(
      byTag('type', {
        function: object(
          {
            'type!': anything,
            ...functionMembers,
            async: flag,
            defer_loading: flag,
            allowed_callers: list(text()),
            output_schema: anyObject,
          },
          nulls,
        ),
      }),
    ),
    top_logprobs: amount({ min: 0, max: 20, whole: true }),
    top_p: amount({ min: 0, max: 1 }),
    truncation: word('auto', 'disabled'),
  },
  nulls,
)

/** What goes by another name here than in Chat Completions. */
const moved: Record<string, string> = {
  messages: 'input',
  max_tokens: 'max_output_tokens',
  max_completion_tokens: 'max_output_tokens',
  reasoning_effort: 'reasoning.effort',
  response_format: 'text.format',
  verbosity: 'text.verbosity',
}

/** What OpenAI's Responses have against a request. */
export function strictResponses(request: Record<string, unknown>, state: StrictState): Refusal | undefined {
  const old = Object.keys(request).find((name) => moved[name] !== undefined)
  if (old !== undefined) {
    return refuse(
      `Unsupported parameter: '${old}'. In the Responses API, this parameter has moved to '${moved[old]}'. Try again with the new parameter. See the API documentation for more information: https://platform.openai.com/docs/api-reference/responses/create.`,
      { code: 'unsupported_parameter' },
    )
  }
  const fault = body(request, [])
  if (fault?.kind === 'pattern' && fault.pattern.startsWith('^') && /^\^(fc|rs|msg|resp)$/.test(fault.pattern)) {
    const { param } = openaiRefusal(fault)
    return refuse(`Invalid '${param}': '${fault.got}'. Expected an ID that begins with '${fault.pattern.slice(1)}'.`, {
      param: param ?? null,
      code: 'invalid_value',
    })
  }
  if (fault) return openaiRefusal(fault)
  return firstFault([
    () => modelRefusal(request),
    () => toolsRefusal(request),
    () => textRefusal(request),
    () => previousRefusal(request['previous_response_id'] as string | null | undefined),
    () => (Array.isArray(request['input']) ? itemsRefusal(request['input'] as InputItem[], request, state) : undefined),
  ])
}

/** This service keeps no answers, as with `store: false`. */
function previousRefusal(id: string | null | undefined): Refusal | undefined {
  if (id == null) return undefined
  return refuse(`Previous response with id '${id}' not found.`, {
    param: 'previous_response_id',
    code: 'previous_response_not_found',
  })
}

/** What this model does not take. */
function modelRefusal(request: Record<string, unknown>): Refusal | undefined {
  const model = String(request['model'])
  const facts = openaiFacts(model)
  const reasoning = (request['reasoning'] ?? {}) as Record<string, string | null>
  const unsupported = (param: string, code: string | null): Refusal =>
    refuse(`Unsupported parameter: '${param}' is not supported with this model.`, { param, code })
  if (!facts.reasons) {
    const asked = Object.keys(reasoning).find((name) => reasoning[name] != null)
    if (asked !== undefined) return unsupported(`reasoning.${asked}`, 'unsupported_parameter')
    if (((request['include'] ?? []) as string[]).includes('reasoning.encrypted_content')) {
      return refuse('Encrypted content is not supported with this model.', { param: 'include' })
    }
    return undefined
  }
  const effort = effortOf(request)
  if (!facts.efforts.includes(effort)) {
    return refuse(
      `Unsupported value: '${effort}' is not supported with the '${model}' model. Supported values are: ${quoted(facts.efforts)}.`,
      { param: 'reasoning.effort', code: 'unsupported_value' },
    )
  }
  if (effort === 'none' && facts.samples_without_effort) return undefined
  const sampling = ['temperature', 'top_p'].find((name) => request[name] != null)
  return sampling === undefined ? undefined : unsupported(sampling, null)
}

function toolsRefusal(request: Record<string, unknown>): Refusal | undefined {
  const tools = (request['tools'] ?? []) as { name: string; parameters?: unknown; strict?: boolean }[]
  const choice = request['tool_choice']
  if (isObject(choice) && choice['type'] === 'function' && !tools.some(({ name }) => name === choice['name'])) {
    return refuse(`Tool choice 'function' not found in 'tools' parameter.`, { param: 'tool_choice' })
  }
  return firstFault(tools.map((tool, at) => () => functionRefusal(tool, `tools[${at}].parameters`)))
}

function textRefusal(request: Record<string, unknown>): Refusal | undefined {
  const { format } = (request['text'] ?? {}) as { format?: Record<string, unknown> }
  if (format?.['type'] === 'json_schema') {
    return formatRefusal(format, { param: 'text.format.schema', code: 'invalid_json_schema' })
  }
  if (format?.['type'] === 'json_object' && !/json/i.test(JSON.stringify(request['input']))) {
    return refuse(
      `Response input messages must contain the word 'json' in some form to use 'text.format' of type 'json_object'.`,
      { param: 'input' },
    )
  }
  return undefined
}
