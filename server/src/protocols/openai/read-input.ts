import { isObject } from '#contract/core/merge-patch.ts'
import { openaiBounds } from '#contract/doors/openai.ts'
import type { InputMessage } from '#contract/tasks/tasks.ts'
import { newId } from '../../platform/ids.ts'
import { badParameter, unsupported } from './problems.ts'
import { approvalOfItem } from './response-state.ts'

/** The result of a call of a caller's tool, and where it stands in the request. */
export interface CallResult {
  call_id: string
  output: string
  /** How many messages of the history come before it. */
  at: number
}

/** An answer to an approval. */
export interface ApprovalAnswer {
  approval_id: string
  approve: boolean
  reason: string | null
}

/** What a request gives a task, in our words. */
export interface AskedInput {
  /** All of it, as a history that stands alone. */
  messages: InputMessage[]
  results: CallResult[]
  approvals: ApprovalAnswer[]
  /** As the protocol says it, each with an id. */
  items: Record<string, unknown>[]
}

/** The `input` of a response: a text or items. Throws 400 with `param`. */
export function readInput(input: unknown, param = 'input'): AskedInput {
  const asked: AskedInput = { messages: [], results: [], approvals: [], items: [] }
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

function readItem(asked: AskedInput, item: unknown, param: string): void {
  if (!isObject(item)) throw badParameter(param, `${param} must be an object.`)
  const { type = 'message' } = item
  switch (type) {
    case 'message': {
      const role = roleOf(item['role'], `${param}.role`)
      if (role === 'tool') throw badParameter(`${param}.role`, 'A result of a tool is an item function_call_output.')
      asked.messages.push({ role, content: textOf(item['content'], `${param}.content`) })
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
      })
      break
    }
    // What only the model that wrote it could read, and what repeats a question that is in the journal.
    case 'reasoning':
    case 'item_reference':
    case 'mcp_approval_request':
    case 'mcp_list_tools':
      return
    default:
      throw unsupported(`${param}.type`, `An item of type ${String(type).slice(0, 50)}`)
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
  const asked: AskedInput = { messages: [], results: [], approvals: [], items: [] }
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
    const content = hasNone && calls.length > 0 ? '' : textOf(message['content'], `${param}.content`)
    asked.messages.push({ role, content, ...(calls.length > 0 && { tool_calls: calls }) })
  })
  // Only results at the end answer calls that wait; earlier ones are history.
  const end = asked.messages.findLastIndex(({ role }) => role !== 'tool')
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

/** What a message says: a text, or the texts of its parts. Images and files are refused, not left out. */
function textOf(content: unknown, param: string): string {
  if (typeof content === 'string') return content
  if (!Array.isArray(content)) throw badParameter(param, `${param} must be a text or a list of parts.`)
  return content
    .map((part: unknown, i) => {
      if (typeof part === 'string') return part
      if (isObject(part) && textTypes.has(part['type']) && typeof part['text'] === 'string') return part['text']
      if (isObject(part) && part['type'] === 'refusal' && typeof part['refusal'] === 'string') return part['refusal']
      const type = isObject(part) ? String(part['type']).slice(0, 50) : 'unknown'
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
