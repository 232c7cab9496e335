import type { LiveEventType, Operations, TaskEventType, TaskState } from './contract.ts'
import { CadreError } from './errors.ts'
import { readEvents, type StreamOptions } from './event-source.ts'
import type { Http } from './http.ts'
import type { Task } from './types.ts'

type StoredEvent = Operations['listTaskEvents']['result']['events'][number]

interface Live<Type extends LiveEventType, Data> {
  type: Type
  task_id: string
  /** The sequence of the last kept event. */
  sequence: number
  created_at: string
  data: Data
}

/** The task as it is when a connection is made: the first, and each one after. */
export type TaskSnapshot = Live<'task.snapshot', { task: Task }>
/** All text of a message so far: it takes the place of what was shown of it. */
export type MessageSnapshot = Live<'message.snapshot', { message_id: string; text: string }>
export type MessageDelta = Live<'message.delta' | 'reasoning.delta', { message_id: string; text: string }>

/** What a task's stream tells: kept events, each once and in order, and between them what is not kept. */
export type TaskStreamEvent = StoredEvent | TaskSnapshot | MessageSnapshot | MessageDelta

const finalEvents: readonly TaskEventType[] = ['task.completed', 'task.failed', 'task.canceled', 'task.expired']
const finalStates: readonly TaskState[] = ['completed', 'failed', 'canceled', 'expired']

/** Whether a task has ended: it never changes again. */
export function isFinished(status: TaskState): boolean {
  return finalStates.includes(status)
}

/** `after`: the last sequence that you have; the stream begins after it. */
export interface TaskStreamOptions extends StreamOptions {
  after?: number | undefined
}

interface Handlers {
  /** Text of the answer as it is written, a piece at a time: together all of it, also where it was written before the stream began. */
  text: (piece: string) => void
  event: (event: TaskStreamEvent) => void
}

/**
 * Events of a task, to be iterated over once. It reconnects broken connections, so that every stored event comes
 * exactly once; it ends with the task. `Data` is the type of the task's `output_schema`.
 */
export class TaskStream<Data = unknown> implements AsyncIterable<TaskStreamEvent> {
  readonly #begin: () => AsyncGenerator<TaskStreamEvent>
  readonly #read: (task_id: string) => Promise<Task<Data>>
  readonly #handlers: { [Name in keyof Handlers]: Handlers[Name][] } = { text: [], event: [] }
  #isBegun = false
  #task_id: string | undefined
  /** Characters of each unfinished message that the handlers have had. */
  readonly #had = new Map<string, number>()

  constructor(begin: () => AsyncGenerator<TaskStreamEvent>, read: (task_id: string) => Promise<Task<Data>>) {
    this.#begin = begin
    this.#read = read
  }

  /** Calls `handler` while the stream is read. */
  on<Name extends keyof Handlers>(name: Name, handler: Handlers[Name]): this {
    this.#handlers[name].push(handler)
    return this
  }

  /** Reads the stream to its end, where it was not read, and returns the task as it ended, also where it failed. */
  async finalTask(): Promise<Task<Data>> {
    for await (const _ of this);
    if (this.#task_id === undefined) throw new CadreError('The stream ended before its first event.')
    return this.#read(this.#task_id)
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<TaskStreamEvent, void, undefined> {
    if (this.#isBegun) throw new CadreError('A stream is read once; take another one for another reader.')
    this.#isBegun = true
    for await (const event of this.#begin()) {
      this.#task_id = event.task_id
      for (const handler of this.#handlers.event) handler(event)
      const piece = this.#newText(event)
      if (piece !== '') for (const handler of this.#handlers.text) handler(piece)
      yield event
    }
  }

  /** The part of an event's text that the handlers have not had. Text that was written before the stream began comes with the whole message. */
  #newText({ type, data }: TaskStreamEvent): string {
    if (type !== 'message.delta' && type !== 'message.snapshot' && type !== 'message.completed') return ''
    const { message_id, text, content } = data as { message_id: string; text?: string; content?: string | null }
    const had = this.#had.get(message_id) ?? 0
    const piece = type === 'message.delta' ? (text ?? '') : (text ?? content ?? '').slice(had)
    if (type === 'message.completed') this.#had.delete(message_id)
    else this.#had.set(message_id, had + piece.length)
    return piece
  }
}

/** The events of a task; see `TaskStream`. */
export async function* taskEvents(
  http: Http,
  path: string,
  { after = 0, ...options }: TaskStreamOptions = {},
): AsyncGenerator<TaskStreamEvent> {
  let last = after
  let isDone = false
  const source = { path, after: after > 0 ? String(after) : undefined, isDone: () => isDone }
  for await (const frame of readEvents(http, source, options)) {
    const event = JSON.parse(frame.data) as TaskStreamEvent
    if (frame.id !== undefined) {
      if (event.sequence <= last) continue
      last = event.sequence
    }
    if (isOf(event, ...finalEvents)) isDone = true
    // Of a task that had ended before, everything may be known already.
    if (event.type === 'task.snapshot' && isFinished(event.data.task.status) && event.sequence <= last) isDone = true
    yield event
  }
}

function isOf(event: TaskStreamEvent, ...types: readonly string[]): boolean {
  return types.includes(event.type)
}
