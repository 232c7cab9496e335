import { isObject } from '#contract/core/merge-patch.ts'
import { openaiBounds } from '#contract/doors/openai.ts'
import { taskBounds, type InputMessage, type MessageContent, type MessagePart } from '#contract/tasks/tasks.ts'
import { newId } from '../../platform/ids.ts'
import { dataUrl, type AskedFiles } from '../door-files.ts'
import { badParameter, shown, unsupported } from './problems.ts'
import { approvalOfItem } from './response-state.ts'

/** The result of a call of a caller-defined tool, with its position in the request. */
export interface CallResult {
  call_id: string
  output: string
  /** Number of messages of the history before it. */
  at: number
}

/** A decision on an approval. */
export interface ApprovalAnswer {
  approval_id: string
  approve: boolean
  reason: string | null
  /** Number of messages of the history before it. */
  at: number
}

/** The validated input of a request. */
export interface AskedInput extends AskedFiles {
  /** The whole input as a history. */
  messages: InputMessage[]
  results: CallResult[]
  approvals: ApprovalAnswer[]
  /** The items in the form of the protocol, each with an id. */
  items: Record<string, unknown>[]
}

/** The `input` of a response: a text or items. Throws 400 with `param`. */
export function readInput(input: unknown, param = 'input'): AskedInput {
  const asked = noInput()
  if (typeof input === 'string') {
    readItem(asked, { type: 'message', role: 'user', content: input }, param)
    return asked
  }
  if (!Array.isArray(input)) throw badParameter(param, `${param} must be a text or a list of items.`)
  if (input.length > openaiBounds.items)
    throw badParameter(param, `${param} must have at most ${openaiBounds.items} items.`)
  input.forEach((item, i) => readItem(asked, item, `${param}[${i}]`))
  return asked
}

function noInput(): AskedInput {
  return { messages: [], results: [], approvals: [], items: [], urls: [], named: [] }
}

/** Whether an item is a reference to an item of a response. Clients may omit its type. */
export function isReference(item: unknown): item is { id: string } {
  if (!isObject(item) || typeof item['id'] !== 'string') return false
  const { type, role } = item
  return type === 'item_reference' || ((type === undefined || type === null) && role === undefined)
}

/** Validates an item. References are resolved before: see `withReferences`. */
function readItem(asked: AskedInput, item: unknown, param: string): void {
  if (!isObject(item)) throw badParameter(param, `${param} must be an object.`)
  if (isReference(item)) return
  const { type = 'message' } = item
  switch (type) {
    case 'message': {
      const role = roleOf(item['role'], `${param}.role`)
      if (role === 'tool')
        throw badParameter(`${param}.role`, 'Send the result of a tool as an item of type function_call_output.')
      asked.messages.push({ role, content: contentOf(asked, role, item['content'], `${param}.content`) })
      break
    }
    case 'function_call': {
      const call = { id: text(item, 'call_id', param), name: text(item, 'name', param) }
      addCall(asked.messages, { ...call, arguments: argumentsOf(item['arguments']) })
      break
    }
    case 'function_call_output': {
      const call_id = text(item, 'call_id', param)
      const output = outputOf(item['output'], `${param}.output`)
      asked.results.push({ call_id, output, at: asked.messages.length })
      asked.messages.push({ role: 'tool', call_id, content: output })
      break
    }
    case 'mcp_call': {
      const call_id = text(item, 'id', param)
      addCall(asked.messages, {
        id: call_id,
        name: text(item, 'name', param),
        arguments: argumentsOf(item['arguments']),
      })
      const said = item['output'] ?? item['error'] ?? ''
      asked.messages.push({ role: 'tool', call_id, content: typeof said === 'string' ? said : JSON.stringify(said) })
      break
    }
    case 'mcp_approval_response': {
      const { approve, reason } = item
      if (typeof approve !== 'boolean') throw badParameter(`${param}.approve`, 'approve must be true or false.')
      asked.approvals.push({
        approval_id: approvalOfItem(text(item, 'approval_request_id', param)),
        approve,
        reason: typeof reason === 'string' && reason !== '' ? reason.slice(0, 2000) : null,
        at: asked.messages.length,
      })
      break
    }
    // Reasoning is readable only for the model that wrote it, and the others repeat a question of the journal.
    case 'reasoning':
    case 'mcp_approval_request':
    case 'mcp_list_tools':
      return
    default:
      throw unsupported(`${param}.type`, `An item of type ${shown(type)}`)
  }
  const content =
    type === 'message' && typeof item['content'] === 'string'
      ? { content: [{ type: item['role'] === 'assistant' ? 'output_text' : 'input_text', text: item['content'] }] }
      : {}
  const id = typeof item['id'] === 'string' ? item['id'] : newId('msg')
  asked.items.push({ status: 'completed', ...item, ...content, type, id })
}

/** The messages of a chat. Throws 400 with `param`. */
export function readChatMessages(messages: unknown): AskedInput {
  if (!Array.isArray(messages) || messages.length === 0)
    throw badParameter('messages', 'messages must be a list of at least one message.')
  if (messages.length > openaiBounds.items)
    throw badParameter('messages', `messages must have at most ${openaiBounds.items} entries.`)
  const asked = noInput()
  messages.forEach((message: unknown, i) => {
    const param = `messages[${i}]`
    if (!isObject(message)) throw badParameter(param, `${param} must be an object.`)
    const role = roleOf(message['role'], `${param}.role`)
    if (role === 'tool') {
      const call_id = text(message, 'tool_call_id', param)
      const content = outputOf(message['content'], `${param}.content`)
      asked.results.push({ call_id, output: content, at: asked.messages.length })
      asked.messages.push({ role, call_id, content })
      return
    }
    const calls = role === 'assistant' ? chatCalls(message['tool_calls'], `${param}.tool_calls`) : []
    const hasNone = message['content'] === null || message['content'] === undefined
    const content = hasNone && calls.length > 0 ? '' : contentOf(asked, role, message['content'], `${param}.content`)
    asked.messages.push({ role, content, ...(calls.length > 0 && { tool_calls: calls }) })
  })
  // Only results after the last answer resolve waiting calls; earlier ones are history.
  const end = asked.messages.findLastIndex(({ role }) => role === 'assistant')
  asked.results = asked.results.filter(({ at }) => at > end)
  return asked
}

function chatCalls(calls: unknown, param: string): NonNullable<InputMessage['tool_calls']> {
  if (calls === undefined || calls === null) return []
  if (!Array.isArray(calls)) throw badParameter(param, `${param} must be a list.`)
  return calls.map((call: unknown, i) => {
    const place = `${param}[${i}]`
    const called = isObject(call) ? call['function'] : undefined
    if (!isObject(call) || !isObject(called)) throw badParameter(place, `${place} must be a call of a function.`)
    return {
      id: text(call, 'id', place),
      name: text(called, 'name', place),
      arguments: argumentsOf(called['arguments']),
    }
  })
}

function addCall(messages: InputMessage[], call: NonNullable<InputMessage['tool_calls']>[number]): void {
  const last = messages.at(-1)
  if (last?.role === 'assistant') last.tool_calls = [...(last.tool_calls ?? []), call]
  else messages.push({ role: 'assistant', content: '', tool_calls: [call] })
}

function roleOf(role: unknown, param: string): InputMessage['role'] {
  if (role === 'developer') return 'system'
  if (role === 'function') return 'tool'
  if (role === 'system' || role === 'user' || role === 'assistant' || role === 'tool') return role
  throw badParameter(param, `${param} must be one of system, developer, user, assistant, tool.`)
}

const textTypes = new Set<unknown>(['text', 'input_text', 'output_text'])

const fileTypes = new Set<unknown>(['input_image', 'image_url', 'input_file', 'file'])

/** The content of a message: a text, or parts if it has images or files, which only messages of the user may have. */
function contentOf(asked: AskedInput, role: string, content: unknown, param: string): MessageContent {
  const hasFiles = Array.isArray(content) && content.some((part) => isObject(part) && fileTypes.has(part['type']))
  if (role !== 'user' || !hasFiles) return textOf(content, param)
  if (content.length > taskBounds.message_parts)
    throw badParameter(param, `${param} must have at most ${taskBounds.message_parts} parts.`)
  return content.flatMap((part: unknown, i): MessagePart[] => {
    const place = `${param}[${i}]`
    if (isObject(part) && fileTypes.has(part['type'])) return [filePart(asked, part, place)]
    const text = textOf([part], param)
    return text === '' ? [] : [{ type: 'text', text }]
  })
}

/** An image or file part: by file id, as data, or by URL. */
function filePart(asked: AskedInput, part: Record<string, unknown>, place: string): MessagePart {
  const { type } = part
  const isImage = type === 'input_image' || type === 'image_url'
  const member = type === 'file' ? 'file' : undefined
  const of = member === undefined ? part : part[member]
  if (!isObject(of)) throw badParameter(`${place}.file`, `${place}.file must be an object.`)
  const at = member === undefined ? place : `${place}.${member}`
  const kind = isImage ? 'image' : 'file'
  const { file_id, filename } = of
  if (file_id !== undefined && file_id !== null) {
    if (typeof file_id !== 'string' || file_id === '')
      throw badParameter(`${at}.file_id`, `${at}.file_id must be the id of a file.`)
    asked.named.push({ file_id, param: `${at}.file_id` })
    return { type: kind, file_id }
  }
  const { url, field } = isImage ? imageUrl(of, at) : fileUrl(of, at)
  const name = typeof filename === 'string' && filename !== '' ? filename : undefined
  asked.urls.push({ url, field, type: kind, name })
  return { type: kind, file_id: url }
}

/** `image_url` is a text in Responses and an object with `url` in chats. */
function imageUrl({ image_url }: Record<string, unknown>, at: string): { url: string; field: string } {
  const field = isObject(image_url) ? `${at}.image_url.url` : `${at}.image_url`
  const url = isObject(image_url) ? image_url['url'] : image_url
  if (typeof url !== 'string' || !/^(data:image\/|https:\/\/)/.test(url))
    throw badParameter(field, `${field} must be a data: URL of an image, or an https: URL.`)
  return { url, field }
}

function fileUrl({ file_data, file_url }: Record<string, unknown>, at: string): { url: string; field: string } {
  if (typeof file_data === 'string' && file_data !== '') return { url: dataUrl(file_data), field: `${at}.file_data` }
  if (typeof file_url === 'string' && file_url.startsWith('https://')) return { url: file_url, field: `${at}.file_url` }
  throw badParameter(at, `${at} must have a file_id, file_data in base64, or a file_url with an https: URL.`)
}

/** Items for storage: data is replaced by the id of the file that it became. */
export function keptItems(
  items: readonly Record<string, unknown>[],
  fileOf: (url: string) => string | undefined,
): Record<string, unknown>[] {
  return items.map((item) => {
    const { content } = item
    if (!Array.isArray(content)) return item
    return { ...item, content: content.map((part: unknown) => (isObject(part) ? keptPart(part, fileOf) : part)) }
  })
}

function keptPart(
  { image_url, file_data, ...part }: Record<string, unknown>,
  fileOf: (url: string) => string | undefined,
): Record<string, unknown> {
  const url = typeof image_url === 'string' ? image_url : typeof file_data === 'string' ? dataUrl(file_data) : undefined
  const file_id = url?.startsWith('data:') === true ? fileOf(url) : undefined
  if (file_id !== undefined) return { ...part, file_id }
  return { ...part, ...(image_url !== undefined && { image_url }), ...(file_data !== undefined && { file_data }) }
}

/** The text of a message or of its parts. Images and files are refused, not dropped. */
function textOf(content: unknown, param: string): string {
  if (typeof content === 'string') return content
  if (!Array.isArray(content)) throw badParameter(param, `${param} must be a text or a list of parts.`)
  return content
    .map((part: unknown, i) => {
      if (typeof part === 'string') return part
      if (isObject(part) && textTypes.has(part['type']) && typeof part['text'] === 'string') return part['text']
      if (isObject(part) && part['type'] === 'refusal' && typeof part['refusal'] === 'string') return part['refusal']
      const type = isObject(part) ? shown(part['type']) : 'unknown'
      throw unsupported(`${param}[${i}]`, `A part of type ${type}`)
    })
    .join('\n\n')
}

function outputOf(output: unknown, param: string): string {
  if (output === undefined || output === null) return ''
  return typeof output === 'string' || Array.isArray(output) ? textOf(output, param) : JSON.stringify(output)
}

function argumentsOf(given: unknown): unknown {
  if (typeof given !== 'string') return given ?? {}
  try {
    return JSON.parse(given) as unknown
  } catch {
    return given
  }
}

function text(of: Record<string, unknown>, member: string, param: string): string {
  const value = of[member]
  if (typeof value === 'string' && value !== '' && value.length <= 256) return value
  throw badParameter(`${param}.${member}`, `${param}.${member} must be a text of 1 to 256 characters.`)
}
