import { isObject } from '#contract/core/merge-patch.ts'
import type { CallOptions } from './providers/adapter.ts'
import type {
  LoadedFile,
  ModelMessage,
  ModelRequest,
  ModelTool,
  ModelToolCall,
  ProviderTurn,
  TurnPart,
} from './model.ts'
import type { WireNames } from './wire-names.ts'
import { turnOwner, type Provider } from './providers/provider.ts'

type PromptMessage = CallOptions['prompt'][number]
type AssistantPart = Extract<PromptMessage, { role: 'assistant' }>['content'][number]
type Metadata = NonNullable<AssistantPart['providerOptions']>

/** The context of a request: its provider, the names of its tools, and the answer tool, if there is one. */
export interface PromptContext {
  provider: Provider
  names: WireNames
  signal: AbortSignal
  /** Undefined if the answer is a text, or if its provider enforces the schema. */
  answer_tool: ModelTool | undefined
  /** Files that messages name. */
  files?: ReadonlyMap<string, LoadedFile> | undefined
}

/**
 * Converts a request to the form of the provider libraries. All system messages are joined at the start, because not
 * every provider accepts them elsewhere. An assistant's turn without text and calls is left out, because providers
 * reject it, and so is text that the provider rejects as empty.
 */
export function toCallOptions(request: ModelRequest, given: PromptContext): CallOptions {
  const context = { ...given, files: request.files }
  const { names, signal, answer_tool } = context
  const system = [
    request.system_prompt,
    ...request.messages.filter(({ role }) => role === 'system').map(({ content }) => content),
    answer_tool && answerInstruction(names.toWire(answer_tool.name)),
  ]
    .filter((text) => text !== undefined && text.trim() !== '')
    .join('\n\n')
  const tools = answer_tool ? [...request.tools, answer_tool] : request.tools
  return {
    prompt: [
      ...(system === '' ? [] : [{ role: 'system' as const, content: system }]),
      ...request.messages.flatMap((message) => toPromptMessage(message, context)),
    ],
    ...(tools.length > 0 && {
      tools: tools.map(({ name, description, parameters }) => ({
        type: 'function' as const,
        name: names.toWire(name),
        description,
        inputSchema: completeSchema(parameters) as Record<string, unknown>,
      })),
    }),
    ...(request.output_schema !== undefined &&
      !answer_tool && {
        responseFormat: { type: 'json' as const, schema: request.output_schema, name: 'output' },
      }),
    ...(tools.length > 0 && toolChoice(request, names)),
    abortSignal: signal,
  }
}

/** The tool choice of the request, if it has one. */
function toolChoice({ tool_choice }: ModelRequest, names: WireNames): Pick<CallOptions, 'toolChoice'> {
  if (tool_choice === undefined) return {}
  if (typeof tool_choice === 'string') return { toolChoice: { type: tool_choice } }
  return { toolChoice: { type: 'tool', toolName: names.toWire(tool_choice.name) } }
}

/**
 * Adds `items` to arrays and `properties` to objects without them, as OpenAI requires. The schema's meaning is
 * unchanged.
 */
export function completeSchema(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(completeSchema)
  if (!isObject(schema)) return schema
  const { type, items, prefixItems, properties } = schema
  const isArray = type === 'array' || (Array.isArray(type) && type.includes('array'))
  const members = Object.entries(schema).map(([name, value]) => [name, isLiteral(name) ? value : completeSchema(value)])
  return {
    ...Object.fromEntries(members),
    ...(isArray && items === undefined && prefixItems === undefined ? { items: {} } : {}),
    ...(type === 'object' && properties === undefined ? { properties: {} } : {}),
  }
}

/** Keywords whose value is not a schema. */
function isLiteral(word: string): boolean {
  return ['const', 'enum', 'default', 'examples', 'required'].includes(word)
}

function answerInstruction(tool: string): string {
  return `When you have the final answer, give it by calling the tool ${tool}, alone. Do not write it as text.`
}

function toPromptMessage(message: ModelMessage, context: PromptContext): PromptMessage[] {
  const { role, turn } = message
  if (role === 'system') return []
  if (role === 'user') return [{ role, content: userParts(message, context) }]
  if (role === 'tool') return [{ role, content: [toolResult(message, context)] }]
  const parts =
    turn && isOwnTurn(turn, context.provider) ? turnParts(turn, message, context) : plainParts(message, context)
  return parts.length === 0 ? [] : [{ role, content: parts }]
}

type UserPart = Extract<PromptMessage, { role: 'user' }>['content'][number]

/** The parts of a user's message, with the bytes of files in their places. */
function userParts({ content, parts }: ModelMessage, { files, provider }: PromptContext): UserPart[] {
  if (!parts) return [{ type: 'text', text: content }]
  const said = parts.filter((part) => part.type !== 'text' || !isNoText(part.text, provider))
  return (said.length === 0 ? parts : said).map((part): UserPart => {
    if (part.type === 'text') return { type: 'text', text: part.text }
    const file = files?.get(part.file_id)
    if (!file) return { type: 'text', text: `[${part.type} ${part.file_id}]` }
    if (file.kind === 'text') return { type: 'text', text: file.text }
    const { media_type, name, data } = file
    return { type: 'file', mediaType: media_type, filename: name, data: { type: 'data', data } }
  })
}

/**
 * Whether a provider rejects a text as empty. Anthropic also rejects white space, which its models write before tool
 * calls.
 */
function isNoText(text: string, { protocol }: Provider): boolean {
  return (protocol === 'messages' ? text.trim() : text) === ''
}

/** Whether the current provider wrote the turn, in the current protocol. */
function isOwnTurn(turn: ProviderTurn, provider: Provider): boolean {
  return turn.provider === turnOwner(provider) && turn.protocol === provider.protocol
}

/** A turn as it was written, without calls that have no result, as providers require. */
function turnParts(
  { parts }: ProviderTurn,
  { tool_calls = [] }: ModelMessage,
  context: PromptContext,
): AssistantPart[] {
  const open = new Set(tool_calls.map(({ id }) => id))
  return parts.flatMap((part): AssistantPart[] => {
    const own = part.metadata === undefined ? {} : { providerOptions: part.metadata as Metadata }
    if (part.type === 'tool_call') return open.has(part.id) ? [{ ...callPart(part, context), ...own }] : []
    if (part.type === 'text')
      return isNoText(part.text, context.provider) ? [] : [{ type: 'text', text: part.text, ...own }]
    return [{ type: 'reasoning', text: part.text, ...own }]
  })
}

function callPart({ id, name, input }: Extract<TurnPart, { type: 'tool_call' }>, { provider, names }: PromptContext) {
  const parsed = readArguments(input)
  return {
    type: 'tool-call' as const,
    toolCallId: id,
    toolName: names.toWire(name),
    // Protocols with arguments as text get the text that the model wrote.
    input: isObject(parsed) && provider.protocol !== 'messages' && input.trim() !== '' ? input : asObject(parsed),
  }
}

function plainParts({ content, tool_calls = [] }: ModelMessage, { names, provider }: PromptContext): AssistantPart[] {
  const calls = tool_calls.map(({ id, name, arguments: given }: ModelToolCall) => ({
    type: 'tool-call' as const,
    toolCallId: id,
    toolName: names.toWire(name),
    input: asObject(given),
  }))
  return [...(isNoText(content, provider) ? [] : [{ type: 'text' as const, text: content }]), ...calls]
}

function toolResult({ content, tool_call_id, tool_name, is_error }: ModelMessage, { names }: PromptContext) {
  return {
    type: 'tool-result' as const,
    toolCallId: tool_call_id ?? '',
    toolName: names.toWire(tool_name ?? ''),
    output: { type: is_error ? ('error-text' as const) : ('text' as const), value: content },
  }
}

/** Providers require an object; anything else that the model wrote is wrapped in one. */
function asObject(given: unknown): Record<string, unknown> {
  return isObject(given) ? given : { invalid_arguments: given }
}

/** Parses arguments that the model wrote. Text that is not JSON is returned unchanged, and an empty text as `{}`. */
export function readArguments(input: string): unknown {
  if (input.trim() === '') return {}
  try {
    return JSON.parse(input)
  } catch {
    return input
  }
}
