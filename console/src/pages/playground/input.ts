import { isObject } from '#contract/core/merge-patch.ts'
import type { NewTask } from '#sdk/types.ts'
import { skeletonOf } from '../../agents/schema-skeleton.ts'
import { notJson } from '../../agents/schema-text.ts'
import type { Attachments } from '../../task-parts/attachments.tsx'
import { fileMark } from '#contract/tasks/file-mark.ts'

export type TaskInput = NewTask['input']
type Messages = Extract<TaskInput, readonly unknown[]>

/**
 * What was typed as the input of a task: a list of messages where it is JSON's list of them, the text itself otherwise. Other
 * JSON is a text like any other; what begins like a list of messages and cannot be read is a slip of the hand. Where the agent
 * has an input schema, it is an object.
 */
export function readInput(text: string, schema?: object): { input: TaskInput } | { fault: string } {
  const trimmed = text.trim()
  if (schema) return readObject(trimmed)
  if (trimmed === '') return { fault: 'Type something for the agent' }
  if (!/^\[\s*\{/.test(trimmed)) return { input: text }
  try {
    const value: unknown[] = JSON.parse(trimmed)
    return { input: isMessages(value) ? value : text }
  } catch {
    return /"role"\s*:/.test(trimmed)
      ? { fault: 'This looks like a JSON list of messages, but it is not valid' }
      : { input: text }
  }
}

/** The same of a text with files, which need no words. */
export function readWithFiles(
  text: string,
  schema: object | undefined,
  attachments: Pick<Attachments, 'files' | 'input'>,
): { input: TaskInput } | { fault: string } {
  const isAlone = attachments.files.length === 0
  if (!schema && !isAlone && text.trim() === '') return { input: attachments.input('') }
  const read = readInput(text, schema)
  if ('fault' in read || isAlone || schema) return read
  if (typeof read.input !== 'string') return { fault: 'Attached files go with a text. In a list, name them by file_id' }
  return { input: attachments.input(read.input) }
}

function readObject(text: string): { input: TaskInput } | { fault: string } {
  if (text === '') return { fault: 'This agent takes a JSON object' }
  try {
    const input: unknown = JSON.parse(text)
    return isObject(input) ? { input } : { fault: 'This agent takes a JSON object' }
  } catch (error) {
    return { fault: notJson(error) }
  }
}

function isMessages(value: unknown[]): value is Messages {
  return value.every((one) => typeof one === 'object' && one !== null && 'role' in one && 'content' in one)
}

/** An input as a person reads it. */
export function textOf(input: TaskInput): string {
  return typeof input === 'string' ? input : JSON.stringify(input, null, 2)
}

/** An input as it was said: the words of a single message of a person, with the names of files that stand in it as threads name them. */
export function saidOf(input: TaskInput): string {
  const [message, ...more] = Array.isArray(input) ? input : []
  if (more.length > 0 || message?.role !== 'user' || typeof message.content === 'string') return textOf(input)
  return message.content
    .map((part) => (part.type === 'text' ? part.text : 'file_id' in part ? fileMark(part) : '[image]'))
    .join('\n\n')
}

/** What an input begins with: the members that a schema requires. */
export function blankInput(schema: object): string {
  return JSON.stringify(skeletonOf(schema), null, 2)
}
