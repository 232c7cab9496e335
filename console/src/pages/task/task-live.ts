import type { Cadre } from '#sdk/client.ts'
import { APIError } from '#sdk/errors.ts'
import type { StreamState } from '#sdk/event-source.ts'
import { isFinished, type TaskStreamEvent } from '#sdk/task-stream.ts'
import { whileVisible } from '../../api/visible.ts'
import type { Approval, Step, Task, TaskEvent } from '../../task-parts/types.ts'

/** Steps and events of one request. */
const stepsPage = 50
const eventsPage = 100
/** Changes are read this often at most: a person reads no faster. */
const tell_ms = 60
const refresh_ms = 350
/** Entries whose reading failed because the service was away are read again after this time. */
const retry_ms = 2000

/** What a model writes at this moment. */
interface Writing {
  message_id: string
  text: string
  reasoning: string
}

/**
 * A live task: the newest steps and events are read first, older ones on demand, and new ones come over its stream,
 * which begins where the reading ended. Steps are stored by index and events by sequence, both dense, so nothing is
 * shown twice, and gaps are known.
 */
export class TaskLive {
  readonly project: string
  readonly id: string
  task: Task | undefined
  steps = new Map<number, Step>()
  /** How many steps there are, read or not. */
  stepCount = 0
  events = new Map<number, TaskEvent>()
  lastSequence = 0
  /** Pending ones. */
  approvals: Approval[] = []
  writing: Writing | undefined
  connection: StreamState | 'ended' = 'connecting'
  /** Whether it has, or is about to have, a stream. */
  isWatching = true
  error: unknown
  version = 0
  readonly #api: Cadre
  readonly #abort = new AbortController()
  readonly #listeners = new Set<() => void>()
  readonly #reading = new Set<string>()
  readonly #stale = new Set<number>()
  #isTaskStale = false
  #areApprovalsStale = false
  #telling: ReturnType<typeof setTimeout> | undefined
  #refreshing: ReturnType<typeof setTimeout> | undefined

  constructor(api: Cadre, project: string, id: string) {
    this.#api = api
    this.project = project
    this.id = id
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }
  readonly snapshot = (): number => this.version

  /** Reads and watches until `stop`. */
  async start(): Promise<void> {
    const { signal } = this.#abort
    try {
      this.task = await this.#api.tasks.get(this.project, this.id, {}, { signal })
      this.lastSequence = this.task.last_sequence
      await Promise.all([this.#readNewestSteps(), this.#readApprovals()])
      this.#tell()
      await this.#watch(signal)
      this.connection = 'ended'
    } catch (error) {
      if (!signal.aborted) this.error = error
    } finally {
      this.isWatching = false
    }
    this.#tell()
  }

  /** Reads the stream to its end. A page that comes back gets what it missed. */
  #watch(signal: AbortSignal): Promise<void> {
    const show = (state: StreamState): void => {
      this.connection = state
      this.#tell()
    }
    return whileVisible(
      signal,
      async (line) => {
        const stream = this.#api.tasks.stream(this.project, this.id, {
          after: this.lastSequence,
          signal: line,
          onState: show,
        })
        for await (const event of stream) this.#take(event)
      },
      () => show('reconnecting'),
    )
  }

  stop(): void {
    this.#abort.abort()
    clearTimeout(this.#telling)
    clearTimeout(this.#refreshing)
  }

  /** Sees to it that steps are read, from one index up to another. */
  needSteps(from: number, to: number): void {
    for (let page = Math.floor(from / stepsPage); page <= Math.floor(to / stepsPage); page++) {
      const first = page * stepsPage
      const last = Math.min(first + stepsPage, this.stepCount)
      let isMissing = false
      for (let index = Math.max(first, from); index < Math.min(last, to + 1); index++)
        isMissing ||= !this.steps.has(index)
      if (isMissing) void this.#once(`steps ${first}`, () => this.readSteps(first, stepsPage))
    }
  }

  /** The same for events, by sequence. */
  needEvents(from: number, to: number): void {
    for (let page = Math.floor((from - 1) / eventsPage); page <= Math.floor((to - 1) / eventsPage); page++) {
      const after = page * eventsPage
      let isMissing = false
      for (
        let sequence = Math.max(after + 1, from);
        sequence <= Math.min(after + eventsPage, to, this.lastSequence);
        sequence++
      )
        isMissing ||= !this.events.has(sequence)
      if (isMissing) void this.#once(`events ${after}`, () => this.#readEvents(after))
    }
  }

  async readSteps(offset: number, limit: number): Promise<void> {
    const { signal } = this.#abort
    const page = await this.#api.tasks.steps(this.project, this.id, { offset, limit }, { signal }).page()
    for (const step of page.items) this.steps.set(step.index, step)
    this.stepCount = Math.max(this.stepCount, page.total)
    this.#tell()
  }

  /** Reads again what an action may have changed, without waiting for the stream. */
  refresh(): void {
    this.#isTaskStale = true
    this.#areApprovalsStale = true
    this.#refreshSoon()
  }

  async #readNewestSteps(): Promise<void> {
    await this.readSteps(0, stepsPage)
    if (this.stepCount <= stepsPage) return
    const first = Math.floor((this.stepCount - 1) / stepsPage) * stepsPage
    await Promise.all([this.readSteps(first, stepsPage), this.readSteps(Math.max(0, first - stepsPage), stepsPage)])
  }

  async #readEvents(offset: number): Promise<void> {
    const { signal } = this.#abort
    const page = await this.#api.tasks.events(this.project, this.id, { offset, limit: eventsPage }, { signal }).page()
    for (const event of page.items) this.events.set(event.sequence, event)
    this.#tell()
  }

  async #readApprovals(): Promise<void> {
    const { signal } = this.#abort
    const query = { task_id: this.id, status: 'pending', limit: 100 } as const
    const page = await this.#api.approvals.list(this.project, query, { signal }).page()
    this.approvals = page.items
    this.#tell()
  }

  async #once(what: string, read: () => Promise<void>): Promise<void> {
    if (this.#reading.has(what)) return
    this.#reading.add(what)
    for (let isAgain = false; ; isAgain = true) {
      try {
        await read()
        if (isAgain) this.error = undefined
        break
      } catch (error) {
        if (this.#abort.signal.aborted) return
        this.error = error
        this.#tell()
        if (isRefusal(error)) break
        await new Promise((resolve) => setTimeout(resolve, retry_ms))
      }
    }
    this.#reading.delete(what)
  }

  #take(event: TaskStreamEvent): void {
    switch (event.type) {
      case 'task.snapshot':
        this.task = event.data.task
        break
      case 'message.snapshot':
        this.writing = { message_id: event.data.message_id, text: event.data.text, reasoning: this.#reasoningOf(event) }
        break
      case 'message.delta':
      case 'reasoning.delta': {
        const { message_id, text } = event.data
        const now = this.writing?.message_id === message_id ? this.writing : { message_id, text: '', reasoning: '' }
        this.writing =
          event.type === 'message.delta'
            ? { ...now, text: now.text + text }
            : { ...now, reasoning: now.reasoning + text }
        break
      }
      default:
        this.#takeKept(event)
    }
    this.#tell()
  }

  #reasoningOf({ data }: { data: { message_id: string } }): string {
    return this.writing?.message_id === data.message_id ? this.writing.reasoning : ''
  }

  #takeKept(event: TaskEvent): void {
    this.events.set(event.sequence, event)
    this.lastSequence = Math.max(this.lastSequence, event.sequence)
    const data = event.data as { index?: number; usage?: Omit<Task['usage'], 'total'>; message_id?: string }
    if (event.type.startsWith('step.') && data.index !== undefined) {
      this.stepCount = Math.max(this.stepCount, data.index + 1)
      this.#stale.add(data.index)
    }
    // Events are of the task alone; what those below it used is read with the task.
    if (event.type === 'usage.updated' && data.usage && this.task)
      this.task = { ...this.task, usage: { ...this.task.usage, ...data.usage } }
    // The step with the whole text is read soon; until then what was streamed of it stays.
    if (event.type === 'message.discarded') this.writing = undefined
    if (event.type.startsWith('task.') || event.type === 'cancel.requested') this.#isTaskStale = true
    if (event.type.startsWith('approval.')) this.#areApprovalsStale = true
    if (this.#stale.size > 0 || this.#isTaskStale || this.#areApprovalsStale) this.#refreshSoon()
  }

  #refreshSoon(): void {
    this.#refreshing ??= setTimeout(() => {
      this.#refreshing = undefined
      void this.#once('refresh', () => this.#refreshNow()).then(() => {
        if (this.#stale.size > 0 || this.#isTaskStale) this.#refreshSoon()
      })
    }, refresh_ms)
  }

  async #refreshNow(): Promise<void> {
    const { signal } = this.#abort
    const wanted = [...this.#stale].sort((a, b) => a - b)
    const isTask = this.#isTaskStale
    const isApprovals = this.#areApprovalsStale
    this.#stale.clear()
    this.#isTaskStale = this.#areApprovalsStale = false
    try {
      const first = wanted[0]
      if (first !== undefined) {
        const most = 100
        const span = Math.min(most, wanted.at(-1)! - first + 1)
        await this.readSteps(first, span)
        for (const index of wanted) if (index >= first + span) this.#stale.add(index)
        if (this.#isWritten()) this.writing = undefined
      }
      if (isTask) this.task = await this.#api.tasks.get(this.project, this.id, {}, { signal })
      if (isApprovals || isTask) await this.#readApprovals()
      if (this.task && isFinished(this.task.status)) this.writing = undefined
      this.error = undefined
      this.#tell()
    } catch (error) {
      if (isRefusal(error)) throw error
      // The service may be away for a moment: the same is asked for again.
      for (const index of wanted) this.#stale.add(index)
      this.#isTaskStale ||= isTask
      this.#areApprovalsStale ||= isApprovals
      throw error
    }
  }

  /** Whether what was streamed is a step now. */
  #isWritten(): boolean {
    const { writing } = this
    if (!writing) return false
    for (const { output } of this.steps.values())
      if ((output as { message_id?: string } | null)?.message_id === writing.message_id) return true
    return false
  }

  #tell(): void {
    this.#telling ??= setTimeout(() => {
      this.#telling = undefined
      this.version++
      for (const listener of this.#listeners) listener()
    }, tell_ms)
  }
}

/** Whether the service would answer the same again. */
function isRefusal(error: unknown): boolean {
  return error instanceof APIError && error.status < 500 && error.status !== 429
}
