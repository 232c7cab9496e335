import { Message, Role, TaskState, type Artifact, type Part, type StreamResponse, type Task } from '@a2a-js/sdk'
import { approvalExtension } from '#contract/doors/a2a.ts'
import { isObject } from '#contract/core/merge-patch.ts'
import { projectId } from '#contract/core/project-id.ts'
import type { InputMessage, TaskInput } from '#contract/tasks/tasks.ts'
import { saidOf } from '../../engine/conversation/conversation.ts'
import type { Happening, SegmentEnd, SegmentFold } from '../segment-fold.ts'
import type { A2aTask, SentMessage } from './a2a-tasks.queries.ts'
import { camelCased } from './camel-case.ts'

/** An event of a stream with its number, which is the same in every replay. */
export interface A2aFrame {
  number: number
  event: StreamResponse
}

/**
 * Numbers reserved per stored event: first for the frames made from it, then for the text deltas of the model call
 * that it started.
 */
const numbersPerEvent = 2 ** 17
const framesPerEvent = 16

/** The number of a frame of a stored event. */
export function numberOf(sequence: number, offset = 0): number {
  return (sequence - 1) * numbersPerEvent + offset
}

/** The sequence number of the stored event that a frame was made from. */
export function sequenceOf(number: number): number {
  return Math.floor(number / numbersPerEvent) + 1
}

export function textPart(text: string): Part {
  return { content: { $case: 'text', value: text }, metadata: undefined, filename: '', mediaType: '' }
}

export function dataPart(value: unknown): Part {
  return { content: { $case: 'data', value }, metadata: undefined, filename: '', mediaType: 'application/json' }
}

export function artifact(artifactId: 'answer' | 'data', parts: Part[]): Artifact {
  return { artifactId, name: artifactId, description: '', parts, metadata: undefined, extensions: [] }
}

/** Messages for waits that the client cannot end. */
const waitTexts: Record<string, string> = {
  budget: 'A budget is exhausted. The task continues when the budget has room.',
  provider: 'The model is unavailable. The task continues when it is available.',
  agent_paused: 'The agent is paused.',
  agent_stopped: 'The agent is stopped.',
  timer: 'The task waits for a timer.',
  tool: 'The task waits for a tool of another client.',
}

/** The state of a task in A2A, built from its events, and the frames of its stream. */
export class A2aTaskState {
  state = TaskState.TASK_STATE_SUBMITTED
  /** The event at which the task began to wait for input of a client; undefined if it does not. */
  interruptedAt: number | undefined
  /** The number of the latest frame. */
  last = -1
  readonly #row: A2aTask
  readonly #fold: SegmentFold
  readonly #sent: SentMessage[]
  readonly #console: string
  readonly #history: Message[] = []
  /** Number of frames made from the latest stored event so far. */
  #offset = { sequence: 0, frames: 0 }
  #statusMessage: Message | undefined
  #at: string
  #metadata: Record<string, unknown> = {}
  #answer = ''
  /** Text of the artifact as readers have it. */
  #shown: string | undefined
  #replaces = true
  #message_id = ''
  #question: { id: string; text: string } | undefined
  #approvals = new Map<string, { tool: string; arguments: unknown }>()
  #data: unknown = null

  constructor(row: A2aTask, fold: SegmentFold, sent: readonly SentMessage[], public_url: string) {
    this.#row = row
    this.#fold = fold
    this.#console = `${public_url}/p/${projectId(row.project_id)}/tasks/${row.id}`
    this.#at = row.created_at
    this.#sent = [...sent]
    if (sent[0]?.first_sequence !== 1) this.#history.push(...messagesOf(row))
  }

  get isOver(): boolean {
    return isTerminal(this.state)
  }

  /** The task in its current state. */
  task({ historyLength }: { historyLength?: number | undefined } = {}): Task {
    const { id, context_id } = this.#row
    const artifacts = [
      ...(this.#answer === '' ? [] : [artifact('answer', [textPart(this.#answer)])]),
      ...(this.#data === null ? [] : [artifact('data', [dataPart(this.#data)])]),
    ]
    return {
      id,
      contextId: context_id ?? '',
      status: this.#status(),
      artifacts,
      history: lastOf(this.#history, historyLength),
      metadata: this.#cadre(),
    }
  }

  /** A frame with the whole task, for a stream that starts later than the task. */
  frame(number: number): A2aFrame {
    return { number, event: { payload: { $case: 'task', value: this.task() } } }
  }

  #cadre(): Record<string, unknown> {
    return { cadre: { agentVersion: this.#row.agent_version, consoleUrl: this.#console, ...this.#metadata } }
  }

  #status() {
    return { state: this.state, message: this.#statusMessage, timestamp: this.#at }
  }

  /** Moves the client's messages up to `sequence` to the history. */
  takeSent(sequence: number): void {
    while (this.#sent[0] && this.#sent[0].first_sequence <= sequence) {
      const { message } = this.#sent.shift()!
      this.#history.push({ ...Message.fromJSON(message), taskId: this.#row.id, contextId: this.#row.context_id ?? '' })
    }
  }

  /** Shows the task as working before the event of its resumption arrives. */
  goesOn(): void {
    if (this.interruptedAt !== undefined) this.#become(TaskState.TASK_STATE_WORKING, undefined)
  }

  /** Applies an event and returns the frames for it. */
  take(happening: Happening): A2aFrame[] {
    const frames = this.#take(happening)
    this.last = frames.at(-1)?.number ?? this.last
    return frames
  }

  #take(happening: Happening): A2aFrame[] {
    const { sequence } = happening
    this.takeSent(sequence)
    switch (happening.type) {
      case 'began':
        this.#at = this.#fold.at
        return [this.frame(this.#number(sequence))]
      case 'running':
        this.#approvals.clear()
        this.#metadata = {}
        return [this.#statusFrame(sequence, TaskState.TASK_STATE_WORKING, undefined)]
      case 'text.started':
        return this.#putAside(sequence, happening.message_id)
      case 'text.delta':
        return [this.#chunk(happening)]
      case 'text.void':
        this.#answer = ''
        this.#replaces = true
        return []
      case 'server_call.started': {
        const aside = this.#putAside(sequence)
        this.#metadata = { toolCall: { id: happening.step_id, tool: happening.tool } }
        const frame = this.#statusFrame(
          sequence,
          TaskState.TASK_STATE_WORKING,
          this.#say(happening.step_id, `Calls ${happening.tool}.`),
        )
        this.#metadata = {}
        return [...aside, frame]
      }
      case 'question': {
        this.#question = { id: happening.step_id, text: happening.text }
        return this.#putAside(sequence)
      }
      case 'approval': {
        const { approval_id, tool, arguments: given } = happening
        this.#approvals.set(approval_id, { tool, arguments: given })
        return this.#putAside(sequence)
      }
      case 'waiting':
        return [this.#waits(sequence, happening.reason)]
      case 'end':
        return this.#ended(happening)
      default:
        return []
    }
  }

  /** Turns the text so far into a status message, because later events show that it was not the final answer. */
  #putAside(sequence: number, message_id = ''): A2aFrame[] {
    const said = this.#answer
    const of = this.#message_id
    if (message_id !== '') this.#message_id = message_id
    this.#replaces = true
    if (said === '') return []
    this.#answer = ''
    const message = this.#say(of, said)
    this.#history.push(message)
    return [this.#statusFrame(sequence, TaskState.TASK_STATE_WORKING, message)]
  }

  #chunk({ sequence, k, text }: Extract<Happening, { type: 'text.delta' }>): A2aFrame {
    this.#answer += text
    const append = !this.#replaces
    this.#replaces = false
    this.#shown = this.#answer
    return { number: numberOf(sequence, framesPerEvent + k), event: this.#artifactUpdate([textPart(text)], { append }) }
  }

  #artifactUpdate(
    parts: Part[],
    { append = false, lastChunk = false, of = 'answer' as 'answer' | 'data' },
  ): StreamResponse {
    const { id, context_id } = this.#row
    const value = {
      taskId: id,
      contextId: context_id ?? '',
      artifact: artifact(of, parts),
      append,
      lastChunk,
      metadata: undefined,
    }
    return { payload: { $case: 'artifactUpdate', value } }
  }

  #waits(sequence: number, reason: string): A2aFrame {
    this.#metadata = { wait: { reason } }
    const message = this.#say(`wait-${sequence}`, waitTexts[reason] ?? `The task waits: ${reason}.`)
    return this.#statusFrame(sequence, TaskState.TASK_STATE_WORKING, message)
  }

  #ended(end: SegmentEnd): A2aFrame[] {
    if (end.how === 'waiting') return [...this.#putAside(end.sequence), this.#interrupted(end)]
    const frames: A2aFrame[] = []
    if (end.how !== 'completed') {
      // The partial text is not an answer.
      this.#answer = ''
      if (this.#shown !== undefined && this.#shown !== '')
        frames.push({
          number: numberOf(end.sequence),
          event: this.#artifactUpdate([textPart('')], { lastChunk: true }),
        })
      this.#metadata = {
        ...(end.error && { error: camelCased(end.error) }),
        ...(end.receipt && { receipt: camelCased(end.receipt) }),
        ...(end.how === 'expired' && { expired: true }),
      }
    } else {
      const { content, data } = end.output ?? { content: this.#answer, data: null }
      if (content !== (this.#replaces ? '' : this.#answer) || (content !== '' && this.#shown !== content)) {
        const event = this.#artifactUpdate([textPart(content)], { lastChunk: true })
        frames.push({ number: numberOf(end.sequence), event })
      }
      this.#answer = content
      this.#data = data ?? null
      if (this.#data !== null) {
        const event = this.#artifactUpdate([dataPart(this.#data)], { lastChunk: true, of: 'data' })
        frames.push({ number: numberOf(end.sequence, 1), event })
      }
      this.#metadata = {}
    }
    this.#metadata = { ...this.#metadata, ...(end.cost_usd !== null && { costUsd: end.cost_usd }) }
    // A fixed number, because a replay has no frame for the discarded text.
    this.#offset = { sequence: end.sequence, frames: 2 }
    return [...frames, this.#statusFrame(end.sequence, endStates[end.how], this.#lastWord(end))]
  }

  #lastWord({ how, error, sequence }: SegmentEnd): Message | undefined {
    if (how === 'failed' || how === 'expired') return this.#say(`end-${sequence}`, error?.message ?? 'The task failed.')
    return undefined
  }

  #interrupted({ sequence, reason, approval_ids }: SegmentEnd): A2aFrame {
    if (reason === 'tool') return this.#waits(sequence, 'tool')
    this.interruptedAt = sequence
    this.#metadata = { wait: { reason } }
    if (reason === 'input') {
      const { id, text } = this.#question ?? { id: `question-${sequence}`, text: 'The agent waits for a message.' }
      const message = this.#say(id, text)
      this.#history.push(message)
      return this.#statusFrame(sequence, TaskState.TASK_STATE_INPUT_REQUIRED, message)
    }
    const asked = [...this.#approvals].filter(([id]) => approval_ids.length === 0 || approval_ids.includes(id))
    const tools = [...new Set(asked.map(([, { tool }]) => tool))].join(', ')
    const text =
      reason === 'approval'
        ? `The call of ${tools} waits for approval: ${this.#console}`
        : `The outcome of the call of ${tools} is unknown. Say whether it took effect: ${this.#console}`
    const message: Message = {
      ...this.#say(asked[0]?.[0] ?? `approval-${sequence}`, text),
      extensions: [approvalExtension],
    }
    for (const [approval_id, call] of asked) message.parts.push(dataPart({ approval_id, ...call }))
    this.#history.push(message)
    return this.#statusFrame(sequence, TaskState.TASK_STATE_AUTH_REQUIRED, message)
  }

  #say(messageId: string, text: string): Message {
    const { id, context_id } = this.#row
    return {
      ...{ messageId, contextId: context_id ?? '', taskId: id, role: Role.ROLE_AGENT, parts: [textPart(text)] },
      ...{ metadata: undefined, extensions: [], referenceTaskIds: [] },
    }
  }

  #become(state: TaskState, message: Message | undefined): void {
    this.state = state
    if (state !== TaskState.TASK_STATE_INPUT_REQUIRED && state !== TaskState.TASK_STATE_AUTH_REQUIRED)
      this.interruptedAt = undefined
    this.#statusMessage = message
    this.#at = this.#fold.at
  }

  #statusFrame(sequence: number, state: TaskState, message: Message | undefined): A2aFrame {
    this.#become(state, message)
    const { id, context_id } = this.#row
    const value = { taskId: id, contextId: context_id ?? '', status: this.#status(), metadata: this.#cadre() }
    return { number: this.#number(sequence), event: { payload: { $case: 'statusUpdate', value } } }
  }

  #number(sequence: number): number {
    if (this.#offset.sequence !== sequence) this.#offset = { sequence, frames: 0 }
    const number = numberOf(sequence, this.#offset.frames)
    this.#offset.frames += 1
    return number
  }
}

const endStates = {
  completed: TaskState.TASK_STATE_COMPLETED,
  failed: TaskState.TASK_STATE_FAILED,
  expired: TaskState.TASK_STATE_FAILED,
  canceled: TaskState.TASK_STATE_CANCELED,
} as const

export function isTerminal(state: TaskState): boolean {
  return Object.values(endStates).some((end) => end === state)
}

/** The newest entries of a history: all without a length, none with 0. */
export function lastOf(history: readonly Message[], length: number | undefined): Message[] {
  if (length === undefined) return [...history]
  return length === 0 ? [] : history.slice(-length)
}

/** The input of a task that was not created by A2A, as messages. */
function messagesOf({ id, context_id, input }: A2aTask): Message[] {
  return entriesOf(input).map(({ role, part }, i) => ({
    ...{ messageId: `${id}-${i}`, contextId: context_id ?? '', taskId: id, role, parts: [part] },
    ...{ metadata: undefined, extensions: [], referenceTaskIds: [] },
  }))
}

function entriesOf(input: TaskInput): { role: Role; part: Part }[] {
  if (typeof input === 'string') return [{ role: Role.ROLE_USER, part: textPart(input) }]
  if (!Array.isArray(input)) return [{ role: Role.ROLE_USER, part: dataPart(input) }]
  return input.flatMap(({ role, content }: InputMessage) => {
    const { content: text } = saidOf(content)
    if (text === '' || (role !== 'user' && role !== 'assistant')) return []
    return [{ role: role === 'user' ? Role.ROLE_USER : Role.ROLE_AGENT, part: textPart(text) }]
  })
}

/** The state of a task, derived from its row without its journal. */
export function stateOfRow({ status, wait }: Pick<A2aTask, 'status' | 'wait'>): TaskState {
  switch (status) {
    case 'queued':
      return TaskState.TASK_STATE_SUBMITTED
    case 'waiting':
      if (wait?.reason === 'input') return TaskState.TASK_STATE_INPUT_REQUIRED
      return wait?.reason === 'approval' || wait?.reason === 'unknown_outcome'
        ? TaskState.TASK_STATE_AUTH_REQUIRED
        : TaskState.TASK_STATE_WORKING
    case 'running':
      return TaskState.TASK_STATE_WORKING
    default:
      return endStates[status]
  }
}

/** A task of a list, made from its row without its journal. */
export function taskOfRow(row: A2aTask & { status_at: string }, { artifacts }: { artifacts: boolean }): Task {
  const { id, context_id, output, status_at } = row
  const data = isObject(output?.data) ? output.data : null
  return {
    id,
    contextId: context_id ?? '',
    status: { state: stateOfRow(row), message: undefined, timestamp: status_at },
    artifacts:
      artifacts && output
        ? [
            ...(output.content === '' ? [] : [artifact('answer', [textPart(output.content)])]),
            ...(data === null ? [] : [artifact('data', [dataPart(data)])]),
          ]
        : [],
    history: [],
    metadata: { cadre: { agentVersion: row.agent_version } },
  }
}
