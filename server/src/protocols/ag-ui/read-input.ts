import type { Message, ResumeEntry } from '@ag-ui/core'
import { aguiBounds } from '#contract/doors/ag-ui.ts'
import { isObject } from '#contract/core/merge-patch.ts'
import { Problem } from '#contract/core/problems.ts'
import type { InputMessage } from '#contract/tasks/tasks.ts'
import type { Caller } from '../../engine/task.ts'
import { readOptions } from '../openai/read-options.ts'
import { settingsOf } from '../settings-of.ts'
import { badInput } from './problems.ts'

/** The settings in `config.doors.agui` of an agent. */
export interface AguiConfig {
  published: boolean
  /** Whether the agent reads context, state and forwarded properties. */
  context: boolean
}

export function aguiConfig(config: Record<string, unknown>): AguiConfig {
  const agui = settingsOf(config, 'agui')
  return { published: agui['published'] === true, context: agui['context'] === true }
}

/** The validated input of a run. */
export interface AskedRun {
  thread_id: string
  run_id: string
  messages: Message[]
  resume: ResumeEntry[]
  caller: Caller
  /** Context, state and forwarded properties that the agent does not read; stored with the task. */
  kept: Record<string, unknown> | undefined
}

const roles = new Set<unknown>(['user', 'assistant', 'system', 'developer', 'tool', 'activity', 'reasoning'])

/** Validates a `RunAgentInput`. Throws 400 with the invalid member. */
export function readRun(body: Record<string, unknown>, config: Record<string, unknown>): AskedRun {
  const { context, state, forwardedProps, tools = [] } = body
  if (context !== undefined && context !== null && !Array.isArray(context)) throw badInput('context', 'must be a list')
  const about = Object.fromEntries(
    Object.entries({ context, state, forwardedProps }).filter(([, value]) => !isEmpty(value)),
  )
  const reads = aguiConfig(config).context
  const text = JSON.stringify(about)
  const bytes = Buffer.byteLength(text)
  if (reads && bytes > aguiBounds.context_read_bytes)
    throw badInput('context', `must have at most ${aguiBounds.context_read_bytes} bytes with state and forwardedProps`)
  const isAny = Object.keys(about).length > 0
  return {
    thread_id: identifier(body, 'threadId'),
    run_id: identifier(body, 'runId'),
    messages: readMessages(body['messages']),
    resume: readResume(body['resume']),
    caller: {
      ...readTools(tools, config),
      ...(reads && isAny && { instructions: `State of the application, as JSON:\n${text}` }),
    },
    kept: reads || !isAny ? undefined : bytes > aguiBounds.context_bytes ? { left_out_bytes: bytes } : about,
  }
}

function isEmpty(value: unknown): boolean {
  if (value === undefined || value === null || value === '') return true
  return Array.isArray(value) ? value.length === 0 : isObject(value) && Object.keys(value).length === 0
}

function identifier(body: Record<string, unknown>, name: string): string {
  const value = body[name]
  if (typeof value !== 'string' || value === '' || value.length > aguiBounds.id)
    throw badInput(name, `must be a text of 1 to ${aguiBounds.id} characters`)
  return value
}

function readMessages(given: unknown): Message[] {
  if (!Array.isArray(given)) throw badInput('messages', 'must be a list')
  if (given.length > aguiBounds.messages) throw badInput('messages', `must have at most ${aguiBounds.messages} entries`)
  return given.map((message: unknown, i) => {
    const place = `messages[${i}]`
    if (!isObject(message)) throw badInput(place, 'must be an object')
    if (typeof message['id'] !== 'string' || message['id'] === '') throw badInput(`${place}.id`, 'must be a text')
    if (!roles.has(message['role']))
      throw badInput(`${place}.role`, 'must be user, assistant, system, developer or tool')
    if (message['role'] === 'tool' && typeof message['toolCallId'] !== 'string')
      throw badInput(`${place}.toolCallId`, 'must be a text')
    const { error, toolCalls } = message
    if (error !== undefined && error !== null && typeof error !== 'string')
      throw badInput(`${place}.error`, 'must be a text')
    if (message['role'] === 'assistant') requireCalls(toolCalls, `${place}.toolCalls`)
    textOf(message['content'], `${place}.content`)
    return message as unknown as Message
  })
}

function requireCalls(calls: unknown, place: string): void {
  if (calls === undefined || calls === null) return
  if (!Array.isArray(calls)) throw badInput(place, 'must be a list')
  calls.forEach((call: unknown, i) => {
    const called = isObject(call) ? call['function'] : undefined
    if (!isObject(call) || !isObject(called)) throw badInput(`${place}[${i}]`, 'must be a call of a function')
    if (typeof call['id'] !== 'string' || call['id'] === '') throw badInput(`${place}[${i}].id`, 'must be a text')
    const { name, arguments: given } = called
    if (typeof name !== 'string' || name === '') throw badInput(`${place}[${i}].function.name`, 'must be a text')
    if (typeof given !== 'string') throw badInput(`${place}[${i}].function.arguments`, 'must be a text')
  })
}

/** The text of a message or of its parts. Parts that the agent would not see are refused. */
export function textOf(content: unknown, place: string): string {
  if (content === undefined || content === null) return ''
  if (typeof content === 'string') return content
  if (isObject(content)) return JSON.stringify(content)
  if (!Array.isArray(content)) throw badInput(place, 'must be a text or a list of parts')
  return content
    .map((part: unknown, i) => {
      if (isObject(part) && part['type'] === 'text' && typeof part['text'] === 'string') return part['text']
      throw badInput(`${place}[${i}]`, 'must be a part of type text; others are not supported')
    })
    .join('\n\n')
}

/** Messages as the input of a task, without those that only a user interface shows. */
export function inputMessages(messages: readonly Message[]): InputMessage[] {
  return messages.flatMap((message): InputMessage[] => {
    const content = textOf('content' in message ? message.content : undefined, 'content')
    switch (message.role) {
      case 'user':
        return content === '' ? [] : [{ role: 'user', content }]
      case 'system':
      case 'developer':
        return content === '' ? [] : [{ role: 'system', content }]
      case 'tool':
        return [{ role: 'tool', call_id: message.toolCallId, content }]
      case 'assistant': {
        const calls = (message.toolCalls ?? []).map(({ id, function: called }) => ({
          ...{ id, name: called.name, arguments: parsed(called.arguments) },
        }))
        if (content === '' && calls.length === 0) return []
        return [{ role: 'assistant', content, ...(calls.length > 0 && { tool_calls: calls }) }]
      }
      default:
        return []
    }
  })
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    return text
  }
}

function readResume(given: unknown): ResumeEntry[] {
  if (given === undefined || given === null) return []
  if (!Array.isArray(given)) throw badInput('resume', 'must be a list')
  if (given.length > aguiBounds.interrupts)
    throw badInput('resume', `must have at most ${aguiBounds.interrupts} entries`)
  const seen = new Set<string>()
  return given.map((entry: unknown, i) => {
    const place = `resume[${i}]`
    if (!isObject(entry)) throw badInput(place, 'must be an object')
    const { interruptId, status } = entry
    if (typeof interruptId !== 'string' || interruptId === '') throw badInput(`${place}.interruptId`, 'must be a text')
    if (seen.has(interruptId)) throw badInput(`${place}.interruptId`, 'is a duplicate')
    seen.add(interruptId)
    if (status !== 'resolved' && status !== 'cancelled')
      throw badInput(`${place}.status`, 'must be resolved or cancelled')
    return entry as unknown as ResumeEntry
  })
}

/** Client tools of the request. A name that the agent already has is refused. */
function readTools(tools: unknown, config: Record<string, unknown>): Caller {
  if (!Array.isArray(tools)) throw badInput('tools', 'must be a list')
  const functions = tools.map((tool: unknown, i) => {
    if (!isObject(tool)) throw badInput(`tools[${i}]`, 'must be an object')
    const { name, description, parameters } = tool
    return { type: 'function', name, description, parameters }
  })
  try {
    return readOptions({ tools: functions }, config).caller
  } catch (error) {
    if (!(error instanceof Problem)) throw error
    // Without the code and the parameter, which are in the words of OpenAI.
    const { kind, details, message } = error
    throw new Problem(kind, details, { message })
  }
}
