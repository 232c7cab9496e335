import type { NewTask } from '../../../../sdk/src/types.ts'

export type TaskInput = NewTask['input']

/** What was typed as the input of a task: a list of messages where it is JSON's list, the text itself otherwise. */
export function readInput(text: string): { input: TaskInput } | { fault: string } {
  const trimmed = text.trim()
  if (trimmed === '') return { fault: 'Type something for the agent' }
  if (!/^\[\s*\{/.test(trimmed)) return { input: text }
  try {
    return { input: JSON.parse(trimmed) as TaskInput }
  } catch {
    return { fault: 'It begins like a list of messages in JSON and is none' }
  }
}
