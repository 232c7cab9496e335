import type { CallInput } from './call-states.ts'
import type { ModelMessage, ModelToolCall } from './models/model.ts'
import type { Step, TaskInputMessage } from './task-rows.ts'

/** What a finished model call leaves in the journal: the message that the assistant wrote. */
export interface ModelCallOutput {
  message_id: string
  text: string
  tool_calls: ModelToolCall[]
  finish_reason: string
}

/** What a tool call leaves in the journal: the text that the model reads. */
export interface ToolCallOutput {
  content: string
}

/** A message that a person sent to the task, and the step that reads it first. */
export interface ReadMessage {
  content: string
  before_step: number
}

/** All that a conversation is made of. */
export interface Conversation {
  /** What earlier tasks of the thread said. */
  history?: readonly ModelMessage[]
  input: string | TaskInputMessage[]
  steps: readonly Step[]
  messages?: readonly ReadMessage[]
}

/**
 * The conversation so far. Messages are stored once, in the steps that made them; a step's own input only says how many
 * there were before it, so storage grows with the conversation, not with its square.
 */
export function conversation({ history = [], input, steps, messages = [] }: Conversation): ModelMessage[] {
  const all: ModelMessage[] = [...history]
  if (typeof input === 'string') all.push({ role: 'user', content: input })
  else all.push(...input)
  let read = 0
  /** Messages from outside come before a call of the model, never between a call of a tool and its result. */
  const readUpTo = (step: number): void => {
    for (; read < messages.length && messages[read]!.before_step <= step; read += 1)
      all.push({ role: 'user', content: messages[read]!.content })
  }
  steps.forEach((step, at) => {
    if (step.type !== 'model_call') return
    readUpTo(step.index)
    if (step.status === 'completed') all.push(...exchange(step, steps.slice(at + 1)))
  })
  readUpTo(Infinity)
  return all
}

/**
 * Characters of a conversation before a call of the model; a task whose conversation has more fails. With one more round
 * of answers and results this also bounds what of a task a process holds in memory.
 */
export const conversationMax = 8 * 1024 * 1024

/** Characters of a conversation, with the arguments of calls as JSON. */
export function conversationLength(parts: Conversation): number {
  const lengthOf = ({ content, tool_calls }: ModelMessage): number =>
    content.length + (tool_calls ? JSON.stringify(tool_calls).length : 0)
  return conversation(parts).reduce((sum, message) => sum + lengthOf(message), 0)
}

/** An answer of the model and the results of its calls, in the order of the calls. */
function exchange(answer: Step, later: readonly Step[]): ModelMessage[] {
  const { text, tool_calls } = answer.output as ModelCallOutput
  const end = later.findIndex(({ type }) => type === 'model_call')
  const results = new Map<string, Step>()
  for (const step of end < 0 ? later : later.slice(0, end)) {
    if (contentOf(step) !== undefined) results.set((step.input as CallInput).tool_call_id, step)
  }
  return [
    { role: 'assistant', content: text, ...(tool_calls.length > 0 ? { tool_calls } : {}) },
    ...tool_calls.flatMap((call): ModelMessage[] => {
      const step = results.get(call.id)
      const content = step && contentOf(step)
      return content === undefined ? [] : [{ role: 'tool', content, tool_call_id: call.id, tool_name: call.name }]
    }),
  ]
}

/** What the model reads as the result of a call; undefined while there is none. */
function contentOf({ type, output, status }: Step): string | undefined {
  if (type === 'model_call' || output === null) return undefined
  // Leave was given: the result is that of the call which follows.
  if (type === 'approval' && status === 'completed') return undefined
  return (output as ToolCallOutput).content
}

/** The last text that the assistant finished, and what it was cut off in the middle of, if anything. */
export function lastText(steps: readonly Step[], unfinished: string): string | undefined {
  if (unfinished !== '') return unfinished
  const done = steps.findLast((step) => step.type === 'model_call' && step.status === 'completed')
  return done ? (done.output as ModelCallOutput).text : undefined
}
