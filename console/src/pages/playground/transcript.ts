import type { TaskStreamEvent } from '#sdk/task-stream.ts'

/** Something that a task said or did. */
export type Item =
  | { kind: 'message'; id: string; text: string; isDone: boolean }
  | {
      kind: 'tool'
      id: string
      /** Which step of the task it is, from 0; undefined where that is unknown. */
      index: number | undefined
      name: string
      state: 'running' | 'completed' | 'failed'
      error?: string
    }
  | { kind: 'artifact'; id: string; name: string; media_type: string; bytes: number }
  | { kind: 'compaction'; id: string }
  | { kind: 'approval'; id: string; name: string; isOpen: boolean }

/** What is known of a task from its stream. */
export interface Transcript {
  items: readonly Item[]
  status: string
  usage?: {
    input_tokens: number
    output_tokens: number
    cached_tokens?: number
    reasoning_tokens?: number
    tool_calls: number
    cost_usd: number | null
  }
  /** What the task answered with, where it is data. */
  data?: unknown
  error?: { code: string; message: string }
}

export const nothingYet: Transcript = { items: [], status: 'queued' }

interface Data {
  message_id?: string
  text?: string
  content?: string
  step_id?: string
  index?: number
  tool?: string
  approval_id?: string
  file_id?: string
  name?: string
  media_type?: string
  bytes?: number
  usage?: Transcript['usage']
  error?: { code: string; message: string }
  output?: { data?: unknown } | null
  task?: { status: string; usage?: Transcript['usage']; output?: Data['output'] }
}

/** What is known after another event. A text that was discarded, as its call is made again, is taken back. */
export function after(known: Transcript, { type, data, sequence }: TaskStreamEvent): Transcript {
  const {
    message_id = '',
    step_id = '',
    index,
    tool = '',
    approval_id = '',
    file_id = '',
    name = '',
    media_type = '',
    bytes = 0,
    text = '',
    content = '',
    usage,
    error,
    output,
    task,
  } = data as Data
  const put = (item: Item): Transcript => ({ ...known, items: replaced(known.items, item) })
  switch (type) {
    case 'task.snapshot':
      return {
        ...known,
        status: task?.status ?? known.status,
        ...(task?.usage ? { usage: task.usage } : {}),
        ...dataOf(task?.output),
      }
    case 'message.snapshot':
      return put({ kind: 'message', id: message_id, text, isDone: false })
    case 'message.delta': {
      const before = known.items.find(({ id }) => id === message_id)
      return put({
        kind: 'message',
        id: message_id,
        text: (before?.kind === 'message' ? before.text : '') + text,
        isDone: false,
      })
    }
    case 'message.completed':
      // A call of the model that only asks for tools says nothing.
      return content === ''
        ? without(known, message_id)
        : put({ kind: 'message', id: message_id, text: content, isDone: true })
    case 'message.discarded':
      return without(known, message_id)
    case 'tool.called':
      return put({ kind: 'tool', id: step_id, index, name: tool, state: 'running' })
    case 'tool.completed':
      return put({ kind: 'tool', id: step_id, index, name: tool, state: 'completed' })
    case 'tool.failed':
      return put({
        kind: 'tool',
        id: step_id,
        index,
        name: tool,
        state: 'failed',
        ...(error ? { error: error.message } : {}),
      })
    case 'artifact.created':
      return put({ kind: 'artifact', id: file_id, name, media_type, bytes })
    case 'context.compacted':
      return put({ kind: 'compaction', id: `compaction ${step_id || sequence}` })
    case 'approval.requested':
      return put({ kind: 'approval', id: approval_id, name: tool, isOpen: true })
    case 'approval.resolved':
    case 'approval.expired':
      return put({ kind: 'approval', id: approval_id, name: tool, isOpen: false })
    case 'usage.updated':
      return usage ? { ...known, usage } : known
    case 'task.started':
    case 'task.resumed':
      return { ...known, status: 'running' }
    case 'task.waiting':
      return { ...known, status: 'waiting' }
    case 'cancel.requested':
      return { ...known, status: 'canceling' }
    case 'task.completed':
    case 'task.failed':
    case 'task.canceled':
    case 'task.expired':
      return {
        ...known,
        status: type.slice('task.'.length),
        ...(usage ? { usage } : {}),
        ...(error ? { error } : {}),
        ...dataOf(output),
      }
    default:
      return known
  }
}

function dataOf(output: Data['output']): { data?: unknown } {
  return output?.data === undefined || output.data === null ? {} : { data: output.data }
}

function replaced(items: readonly Item[], item: Item): Item[] {
  const at = items.findIndex(({ id }) => id === item.id)
  return at < 0 ? [...items, item] : items.with(at, item)
}

function without(known: Transcript, id: string): Transcript {
  return { ...known, items: known.items.filter((item) => item.id !== id) }
}
