import type { NewTask } from '../../../../sdk/src/types.ts'

export type TaskInput = NewTask['input']

/**
 * What was typed as the input of a task: a list of messages where it is JSON's list of them, the text itself otherwise. Other
 * JSON is a text like any other; what begins like a list of messages and cannot be read is a slip of the hand.
 */
export function readInput(text: string): { input: TaskInput } | { fault: string } {
  const trimmed = text.trim()
  if (trimmed === '') return { fault: 'Type something for the agent' }
  if (!/^\[\s*\{/.test(trimmed)) return { input: text }
  try {
    const value: unknown[] = JSON.parse(trimmed)
    return { input: value.every(isMessage) ? value : text }
  } catch {
    return /"role"\s*:/.test(trimmed)
      ? { fault: 'It begins like a list of messages in JSON and is none' }
      : { input: text }
  }
}

function isMessage(value: unknown): value is Exclude<TaskInput, string>[number] {
  return typeof value === 'object' && value !== null && 'role' in value && 'content' in value
}

/** An input as a person reads it. */
export function textOf(input: TaskInput): string {
  return typeof input === 'string' ? input : JSON.stringify(input, null, 2)
}
