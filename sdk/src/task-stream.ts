import type { LiveEventType, Operations, TaskEventType, TaskState } from './contract.ts'
import { CadreError } from './errors.ts'
import { readEvents, type StreamOptions } from './event-source.ts'
import type { Http } from './http.ts'
import type { Task } from './types.ts'

type StoredEvent = Operations['listTaskEvents']['result']['events'][number]

interface Live<Type extends LiveEventType, Data> {
  type: Type
  task_id: string
  /** The sequence of the last stored event. */
  sequence: number
  created_at: string
  data: Data
}

/** The task at the start of each connection. */
export type TaskSnapshot = Live<'task.snapshot', { task: Task }>
/** The whole text of a message so far; it replaces earlier pieces. */
export type MessageSnapshot = Live<'message.snapshot', { message_id: string; text: string }>
export type MessageDelta = Live<'message.delta' | 'reasoning.delta', { message_id: string; text: string }>

/** Events of a task's stream: stored events, each once and in order, and live events, which are not stored. */
export type TaskStreamEvent = StoredEvent | TaskSnapshot | MessageSnapshot | MessageDelta

const finalEvents: readonly TaskEventType[] = ['task.completed', 'task.failed', 'task.canceled', 'task.expired']
const finalStates: readonly TaskState[] = ['completed', 'failed', 'canceled', 'expired']

/** Whether a task has ended; its status is then final. */
export function isFinished(status: TaskState): boolean {
  return finalStates.includes(status)
}

/** `after` is the last known sequence; the stream starts after it. */
export interface TaskStreamOptions extends StreamOptions {
  after?: number | undefined
}

interface Handlers {
  /** Pieces of the answer's text as it is written. Together they are the whole text, even if it began before the stream. */
  text: (piece: string) => void
  event: (event: TaskStreamEvent) => void
}

/**
 * Events of a task, to iterate over once. It reconnects as needed, so that every stored event occurs exactly once; it ends
 * with the task. `Data` is the type of the task's `output_schema`.
 */
export class TaskStream<Data = unknown> implements AsyncIterable<TaskStreamEvent> {
  readonly #begin: () => AsyncGenerator<TaskStreamEvent>
  readonly #read: (task_id: string) => Promise<Task<Data>>
  readonly #handlers: { [Name in keyof Handlers]: Handlers[Name][] } = { text: [], event: [] }
  #isBegun = false
  #task_id: string | undefined
  /** Characters of each unfinished message that were passed to the handlers. */
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

  /** Reads the stream to its end, and returns the ended task, also if it failed. */
  async finalTask(): Promise<Task<Data>> {
    for await (const _ of this);
    if (this.#task_id === undefined) throw new CadreError('The stream ended before its first event.')
    return this.#read(this.#task_id)
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<TaskStreamEvent, void, undefined> {
    if (this.#isBegun) throw new CadreError('A stream can only be read once. Create another stream.')
    this.#isBegun = true
    for await (const event of this.#begin()) {
      this.#task_id = event.task_id
      for (const handler of this.#handlers.event) handler(event)
      const piece = this.#newText(event)
      if (piece !== '') for (const handler of this.#handlers.text) handler(piece)
      yield event
    }
  }

  /** The part of an event's text that is new to the handlers. A message that began before the stream arrives as a whole. */
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
    // If the task had already ended, there may be no further events.
    if (event.type === 'task.snapshot' && isFinished(event.data.task.status) && event.sequence <= last) isDone = true
    yield event
  }
}

function isOf(event: TaskStreamEvent, ...types: readonly string[]): boolean {
  return types.includes(event.type)
}
