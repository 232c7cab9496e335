import { anthropicSchemaFault } from './strict-json-schemas.ts'
import type { Refusal, StrictState } from './strict-memory.ts'
import { claudeFacts, type Effort, thinkingOf } from './strict-model-facts.ts'
import { type ClaudeMessage, complain, turnsRefusal } from './strict-messages-turns.ts'
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

const cacheControl = byTag('type', { ephemeral: object({ 'type!': anything, ttl: word('5m', '1h') }) }, { named: true })
const cached = { cache_control: byKind({ object: cacheControl, null: anything }) }
const id = text({ pattern: /^[a-zA-Z0-9_-]+$/ })
const name = text({ pattern: /^[a-zA-Z0-9_-]{1,128}$/ })
const textBlock = object({ 'type!': anything, 'text!': text(), ...cached, citations: anything })
const source = byTag(
  'type',
  {
    base64: object({ 'type!': anything, 'media_type!': text(), 'data!': text() }),
    url: object({ 'type!': anything, 'url!': text() }),
    file: object({ 'type!': anything, 'file_id!': text() }),
    text: object({ 'type!': anything, 'media_type!': word('text/plain'), 'data!': text() }),
  },
  { named: true },
)
const image = object({ 'type!': anything, 'source!': source, ...cached })
const documentBlock = object({
  'type!': anything,
  'source!': source,
  title: byKind({ string: text(), null: anything }),
  context: byKind({ string: text(), null: anything }),
  citations: object({ enabled: flag }),
  ...cached,
})
const named = { named: true }
const resultBlocks = byTag('type', { text: textBlock, image, document: documentBlock }, named)
const blocks = byTag(
  'type',
  {
    text: textBlock,
    image,
    document: documentBlock,
    thinking: object({ 'type!': anything, 'thinking!': text(), 'signature!': text() }),
    redacted_thinking: object({ 'type!': anything, 'data!': text() }),
    tool_use: object({
      'type!': anything,
      'id!': id,
      'name!': name,
      'input!': anyObject,
      caller: anyObject,
      ...cached,
    }),
    tool_result: object({
      'type!': anything,
      'tool_use_id!': id,
      content: byKind({ string: text(), array: list(resultBlocks) }),
      is_error: flag,
      ...cached,
    }),
  },
  named,
)
const message = object({
  'role!': word('user', 'assistant'),
  'content!': byKind({ string: text(), array: list(blocks) }),
})

const inputSchema: Shape = (value, path) => {
  const fault = anyObject(value, path)
  if (fault || !isObject(value)) return fault
  if (value['type'] === undefined) return { kind: 'missing', path: [...path, 'type'] }
  return word('object')(value['type'], [...path, 'type'])
}
const tool = byTag(
  'type',
  {
    custom: object({
      type: anything,
      'name!': name,
      'input_schema!': inputSchema,
      description: text(),
      strict: flag,
      eager_input_streaming: byKind({ boolean: flag, null: anything }),
      defer_loading: flag,
      allowed_callers: list(text()),
      input_examples: list(anyObject),
      ...cached,
    }),
  },
  { fallback: 'custom', named: true },
)
const choice = { 'type!': anything, disable_parallel_tool_use: flag }
const efforts: Effort[] = ['low', 'medium', 'high', 'xhigh', 'max']
const display = byKind({ string: word('omitted', 'summarized', 'updates'), null: anything })

const body = object({
  'model!': text({ filled: true }),
  'messages!': list(message),
  'max_tokens!': amount({ min: 1, whole: true }),
  system: byKind({ string: text(), array: list(byTag('type', { text: textBlock })) }),
  stream: flag,
  stop_sequences: list(text()),
  temperature: amount(),
  top_p: amount({ min: 0, max: 1 }),
  top_k: amount({ min: 0, whole: true }),
  metadata: object({ user_id: byKind({ string: text({ max: 256 }), null: anything }) }),
  service_tier: word('auto', 'standard_only'),
  container: anything,
  inference_geo: text(),
  cache_control: cacheControl,
  thinking: byTag(
    'type',
    {
      enabled: object({ 'type!': anything, 'budget_tokens!': amount({ min: 1024, whole: true }), display }),
      adaptive: object({ 'type!': anything, display }),
      between_tools: object({ 'type!': anything }),
      disabled: object({ 'type!': anything }),
    },
    named,
  ),
  output_config: object({
    effort: byKind({ string: word(...efforts), null: anything }),
    format: byKind({
      object: byTag('type', { json_schema: object({ 'type!': anything, 'schema!': anyObject }) }, { named: false }),
      null: anything,
    }),
  }),
  tools: list(tool),
  tool_choice: byTag(
    'type',
    {
      auto: object(choice),
      any: object(choice),
      tool: object({ ...choice, 'name!': text() }),
      none: object({ 'type!': anything }),
    },
    named,
  ),
})

/** What Anthropic has against the headers of a request. */
export function strictMessagesHeaders(headers: Record<string, string | string[] | undefined>): Refusal | undefined {
  if (headers['x-api-key'] === undefined) {
    return { status: 401, type: 'authentication_error', message: 'x-api-key header is required' }
  }
  return headers['anthropic-version'] === undefined ? complain('anthropic-version: header is required') : undefined
}

/** What Anthropic's messages have against a request. */
export function strictMessages(request: Record<string, unknown>, state: StrictState): Refusal | undefined {
  const role = firstRole(request['messages'])
  if (role === 'system') {
    return complain(
      'messages: Unexpected role "system". The Messages API accepts a top-level `system` parameter, not "system" as an input message role.',
    )
  }
  const fault = body(request, [])
  if (fault) return complain(anthropicWords(fault))
  return firstFault([
    () => samplingRefusal(request),
    () => thinkingRefusal(request),
    () => outputRefusal(request),
    () => toolsRefusal(request),
    () => cacheRefusal(request),
    () => turnsRefusal(request['messages'] as ClaudeMessage[], request, state.memory),
  ])
}

function firstRole(messages: unknown): unknown {
  if (!Array.isArray(messages)) return undefined
  return (messages as unknown[]).map((one) => (isObject(one) ? one['role'] : undefined)).find((one) => one === 'system')
}

/** A fault in Anthropic's words. */
function anthropicWords(fault: Fault): string {
  const path = fault.path.join('.')
  switch (fault.kind) {
    case 'unknown':
      return `${path}: Extra inputs are not permitted`
    case 'missing':
      return `${path}: Field required`
    case 'type':
      return `${path}: Input should be a valid ${kinds[fault.expected.at(-1) ?? 'object']}`
    case 'value':
      return `${path}: Input should be ${either(fault.allowed)}`
    case 'tag':
      return `${path}: Input tag '${fault.got}' found using '${fault.key}' does not match any of the expected tags: ${fault.allowed.map((one) => `'${one}'`).join(', ')}`
    case 'pattern':
      return `${path}: String should match pattern '${fault.pattern}'`
    case 'long':
      return `${path}: String should have at most ${fault.max} characters`
    case 'empty':
      return `${path}: ${fault.of === 'array' ? 'List should have at least 1 item after validation, not 0' : 'String should have at least 1 character'}`
    case 'below':
      return `${path}: Input should be greater than or equal to ${fault.min}`
    case 'above':
      return `${path}: Input should be less than or equal to ${fault.max}`
  }
}

const kinds = {
  null: 'value',
  boolean: 'boolean',
  integer: 'integer',
  decimal: 'number',
  string: 'string',
  array: 'list',
  object: 'dictionary',
}

function either(terms: string[]): string {
  const all = terms.map((one) => `'${one}'`)
  return all.length < 2 ? all.join('') : `${all.slice(0, -1).join(', ')} or ${all.at(-1)}`
}

const guide = 'https://platform.claude.com/docs/en/build-with-claude/extended-thinking'

function samplingRefusal(request: Record<string, unknown>): Refusal | undefined {
  const { samples } = claudeFacts(String(request['model']))
  const sampling = ['temperature', 'top_p', 'top_k'].find((one) => request[one] !== undefined)
  if (sampling === undefined) return undefined
  if (!samples) return complain(`\`${sampling}\` is deprecated for this model.`)
  const temperature = request['temperature']
  if (typeof temperature === 'number' && (temperature < 0 || temperature > 1))
    return complain('temperature: range: 0..1')
  const thinking = thinkingOf(request)
  if (thinking === 'off') return undefined
  if (temperature !== undefined && temperature !== 1) {
    return complain(
      `\`temperature\` may only be set to 1 when thinking is enabled or in adaptive mode. Please consult our documentation at ${guide}`,
    )
  }
  return request['top_k'] === undefined
    ? undefined
    : complain(`\`top_k\` must be unset when thinking is enabled. Please consult our documentation at ${guide}`)
}

function thinkingRefusal(request: Record<string, unknown>): Refusal | undefined {
  const facts = claudeFacts(String(request['model']))
  const maxTokens = Number(request['max_tokens'])
  if (maxTokens > facts.max_output) {
    return complain(
      `max_tokens: ${maxTokens} > ${facts.max_output}, which is the maximum allowed number of output tokens for ${String(request['model'])}`,
    )
  }
  const { type, budget_tokens = 0 } = (request['thinking'] ?? {}) as { type?: string; budget_tokens?: number }
  const effort = effortOf(request)
  const unsupported =
    (type === 'enabled' && !facts.budget && facts.adaptive) ||
    (type === 'disabled' && facts.disabled === 'never') ||
    (type === 'between_tools' && !facts.between_tools)
  if (unsupported) {
    return complain(
      `"thinking.type.${type}" is not supported for this model. Use "thinking.type.adaptive" and "output_config.effort" to control thinking behavior.`,
    )
  }
  if (type === 'enabled' && !facts.budget) return complain('thinking is not supported on this model')
  if (type === 'adaptive' && !facts.adaptive) return complain('adaptive thinking is not supported on this model')
  if (type === 'enabled' && budget_tokens >= maxTokens) {
    return complain(
      `\`max_tokens\` must be greater than \`thinking.budget_tokens\`. Please consult our documentation at ${guide}#max-tokens-and-context-window-size`,
    )
  }
  if (effort === undefined) return undefined
  if (facts.efforts.length === 0) return complain('This model does not support the effort parameter.')
  if (!facts.efforts.includes(effort)) {
    return complain(
      `This model does not support effort level '${effort}'. Supported levels: ${[...facts.efforts].sort().join(', ')}.`,
    )
  }
  const isHigh = effort === 'xhigh' || effort === 'max'
  if (isHigh && type === 'disabled' && facts.disabled === 'up to high') {
    return complain(
      `output_config.effort '${effort}' is not supported when thinking is disabled on this model. Use effort 'high' or below, or enable thinking.`,
    )
  }
  return isHigh && type === 'between_tools'
    ? complain(`output_config.effort '${effort}' is not supported with "thinking.type.between_tools" on this model.`)
    : undefined
}

function effortOf(request: Record<string, unknown>): Effort | undefined {
  return ((request['output_config'] ?? {}) as { effort?: Effort | null }).effort ?? undefined
}

function outputRefusal(request: Record<string, unknown>): Refusal | undefined {
  const { format } = (request['output_config'] ?? {}) as { format?: { schema: unknown } | null }
  if (!format) return undefined
  const model = String(request['model'])
  if (!claudeFacts(model).structured) return complain(`'${model}' does not support output format.`)
  const fault = anthropicSchemaFault(format.schema)
  return fault === undefined ? undefined : complain(`output_config.format.schema: ${fault}`)
}

interface ClaudeTool {
  name: string
  strict?: boolean
  input_schema: Record<string, unknown>
}

function toolsRefusal(request: Record<string, unknown>): Refusal | undefined {
  const tools = (request['tools'] ?? []) as ClaudeTool[]
  const fault = firstFault(tools.map((tool, at) => () => toolRefusal(tool, `tools.${at}.custom`)))
  if (fault) return fault
  if (new Set(tools.map((tool) => tool.name)).size < tools.length) return complain('tools: Tool names must be unique.')
  const choice = request['tool_choice'] as { type: string; name?: string } | undefined
  if (!choice) return undefined
  if (tools.length === 0 && choice.type !== 'none') {
    return complain('tool_choice may only be specified while providing tools.')
  }
  if (choice.type === 'tool' && !tools.some((tool) => tool.name === choice.name)) {
    return complain(`tool_choice: Tool '${choice.name}' not found in provided tools`)
  }
  if (choice.type !== 'any' && choice.type !== 'tool') return undefined
  if (!claudeFacts(String(request['model'])).forced_tools) {
    return complain('tool_choice: type "tool" and "any" are not supported for this model.')
  }
  // A model that thinks by default takes a forced call; a request that asks for both is refused.
  return request['thinking'] !== undefined && thinkingOf(request) !== 'off'
    ? complain('Thinking may not be enabled when tool_choice forces tool use.')
    : undefined
}

function toolRefusal({ input_schema: schema, strict }: ClaudeTool, path: string): Refusal | undefined {
  if (['oneOf', 'allOf', 'anyOf'].some((one) => schema[one] !== undefined)) {
    return complain(`${path}.input_schema: input_schema does not support oneOf, allOf, or anyOf at the top level`)
  }
  const properties = isObject(schema['properties']) ? Object.keys(schema['properties']) : []
  if (properties.some((one) => !/^[a-zA-Z0-9_.-]{1,64}$/.test(one))) {
    return complain(`${path}.input_schema.properties: Property keys should match pattern '^[a-zA-Z0-9_.-]{1,64}$'`)
  }
  const fault = strict === true ? anthropicSchemaFault(schema) : undefined
  return fault === undefined ? undefined : complain(`${path}: ${fault}`)
}

interface Marked {
  type?: string
  text?: string
  cache_control?: { ttl?: string } | null
  content?: unknown
}

function cacheRefusal(request: Record<string, unknown>): Refusal | undefined {
  const listed = (value: unknown): Marked[] => (Array.isArray(value) ? (value as Marked[]) : [])
  const prefixed = (blocks: Marked[], path: string): [Marked, string][] =>
    blocks.flatMap((block, at) => {
      const where = `${path}.${at}`
      const tag = block.type ?? 'custom'
      return [
        [block, path === 'system' ? where : `${where}.${tag}`] as [Marked, string],
        ...prefixed(listed(block.content), `${where}.${tag}.content`),
      ]
    })
  // In the order in which the cache is built.
  const all: [Marked, string][] = [
    ...prefixed(listed(request['tools']), 'tools'),
    ...prefixed(listed(request['system']), 'system'),
    ...listed(request['messages']).flatMap(({ content }, at) => prefixed(listed(content), `messages.${at}.content`)),
  ]
  const marks = all.filter(([block]) => block.cache_control)
  const count = marks.length + (request['cache_control'] === undefined ? 0 : 1)
  if (count > 4) return complain(`A maximum of 4 blocks with cache_control may be provided. Found ${count}.`)
  const empty = marks.find(([block]) => block.type === 'text' && block.text === '')
  if (empty) return complain(`${empty[1]}: cache_control cannot be set for empty text blocks`)
  const short = marks.findIndex(([block]) => block.cache_control?.ttl !== '1h')
  const late = short === -1 ? undefined : marks.slice(short).find(([block]) => block.cache_control?.ttl === '1h')
  return late === undefined
    ? undefined
    : complain(
        `${late[1]}.cache_control.ttl: a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block. Note that blocks are processed in the following order: \`tools\`, \`system\`, \`messages\`.`,
      )
}
