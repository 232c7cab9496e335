import type { MessageContent } from '#contract/tasks/tasks.ts'
import type { Task } from './types.ts'

/** Characters of an input's JSON that stand in for a title. */
const titleMost = 300

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
  return messagesOf(input)?.at(-1)?.text ?? JSON.stringify(input).slice(0, titleMost)
}

/** The first line of what was asked. */
export function titleOf({ input }: Pick<Task, 'input'>): string {
  const text = messagesOf(input)?.findLast(({ role }) => role === 'user')?.text ?? inputText(input)
  return text.trim().split('\n', 1)[0]?.slice(0, 120) || 'Task'
}
