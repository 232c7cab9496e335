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

export interface ToolCallInput {
  tool_call_id: string
  arguments: unknown
}

/**
 * The conversation so far, from a task's input and its journal. Messages are stored once, in the steps that made them;
 * a step's own input only says how many there were before it, so storage grows with the conversation, not its square.
 */
export function conversation(input: string | TaskInputMessage[], steps: readonly Step[]): ModelMessage[] {
  const start: ModelMessage[] = typeof input === 'string' ? [{ role: 'user', content: input }] : [...input]
  return [...start, ...steps.flatMap(messagesOf)]
}

function messagesOf(step: Step): ModelMessage[] {
  if (step.type === 'model_call' && step.status === 'completed') {
    const { text, tool_calls } = step.output as ModelCallOutput
    return [{ role: 'assistant', content: text, ...(tool_calls.length > 0 ? { tool_calls } : {}) }]
  }
  if (step.type === 'tool_call' && step.output !== null) {
    const { tool_call_id } = step.input as ToolCallInput
    return [{ role: 'tool', content: (step.output as ToolCallOutput).content, tool_call_id, tool_name: step.name }]
  }
  return []
}

/** The last text that the assistant finished, and what it was cut off in the middle of, if anything. */
export function lastText(steps: readonly Step[], unfinished: string): string | undefined {
  if (unfinished !== '') return unfinished
  const done = steps.findLast((step) => step.type === 'model_call' && step.status === 'completed')
  return done ? (done.output as ModelCallOutput).text : undefined
}
