import { isObject } from '#contract/core/merge-patch.ts'
import { withoutOutsideNote } from '#contract/doors/outside-data.ts'
import type { MessageContent } from '#contract/tasks/tasks.ts'
import type { Task } from './types.ts'

/** Characters of a title, and of an input's JSON that stand in for a text. */
const titleMost = 120
const objectMost = 300

/** What a message says: its text, or the texts of its parts; where there are none, which kinds of files it has. */
export function contentText(content: MessageContent): string {
  if (typeof content === 'string') return content
  const texts = content.flatMap((part) => (part.type === 'text' ? [part.text] : []))
  return (texts.length > 0 ? texts : content.map(({ type }) => `[${type}]`)).join('\n')
}

/** An input that is messages, with what each says; undefined of a text or an object. */
export function messagesOf(input: Task['input']): { role: string; text: string }[] | undefined {
  return Array.isArray(input) ? input.map(({ role, content }) => ({ role, text: contentText(content) })) : undefined
}

/** An input in one text: the last message of a list, an object as JSON. */
export function inputText(input: Task['input']): string {
  if (typeof input === 'string') return input
  return messagesOf(input)?.at(-1)?.text ?? JSON.stringify(input).slice(0, objectMost)
}

/** The first line of what was asked: of what came from outside without its marks, of an object its members. */
export function titleOf({ input }: Pick<Task, 'input'>): string {
  const said = messagesOf(input)?.findLast(({ role }) => role === 'user')?.text
  const text = said ?? (isObject(input) ? membersText(input) : inputText(input))
  const [line = ''] = withoutOutsideNote(text).trim().split('\n', 1)
  return line.slice(0, titleMost).replace(/:$/, '') || 'Task'
}

/** `city: Berlin · days: 3`; the JSON of an object whose members are no such values. */
function membersText(input: Record<string, unknown>): string {
  const plain = Object.entries(input).filter(([, value]) => typeof value !== 'object')
  if (plain.length === 0) return JSON.stringify(input).slice(0, objectMost)
  return plain.map(([name, value]) => `${name}: ${String(value).slice(0, titleMost)}`).join(' · ')
}
