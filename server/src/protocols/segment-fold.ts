import type { TaskEvent } from '../events/streams/streams-hub.ts'
import { cutWhole, makeCutter, type Cutter } from './canonical-deltas.ts'

/** Facts about a step event that only the journal stores. */
export interface StepFacts {
  arguments?: unknown
  output?: string | null
  error?: { code: string; message: string } | null
  approval_id?: string | null
  finish_reason?: string | null
  question?: string | null
  /** Whether it is a call of a client tool of the project. */
  is_projects?: true | null
  /** Whether the call delegates a task to another agent. */
  is_delegation?: boolean
  /** For a wait for tools: whether one of them is defined by the caller. */
  waits_for_caller?: boolean
}

/** Tokens of the model calls of a segment. */
export interface SegmentUsage {
  input_tokens: number
  output_tokens: number
  cached_tokens: number
  reasoning_tokens: number
}

/** An event of a segment in the form that all protocols translate. `sequence` is that of the stored event. */
export type Happening =
  | { type: 'began'; sequence: number }
  | { type: 'running'; sequence: number }
  /** A model call starts. */
  | { type: 'model_call'; sequence: number; message_id: string }
  | { type: 'text.started'; sequence: number; message_id: string }
  /** Text chunk `k`, from 0, of the model call that started with the event `sequence`. */
  | { type: 'text.delta'; sequence: number; message_id: string; k: number; text: string }
  | { type: 'text.done'; sequence: number; message_id: string; text: string }
  /** The text so far is void, because the model call is retried or the task has ended. */
  | { type: 'text.void'; sequence: number; message_id: string }
  | {
      type: 'server_call.started'
      sequence: number
      step_id: string
      tool: string
      arguments: unknown
      approval_id: string | null
    }
  | {
      type: 'server_call.done'
      sequence: number
      step_id: string
      output: string | null
      error: { code: string; message: string } | null
    }
  | { type: 'caller_call'; sequence: number; call_id: string; tool: string; arguments: unknown }
  | { type: 'approval'; sequence: number; approval_id: string; tool: string; arguments: unknown }
  | { type: 'question'; sequence: number; step_id: string; text: string }
  /** The task waits for something other than this caller, and continues without its help. */
  | { type: 'waiting'; sequence: number; reason: string }
  | SegmentEnd

export interface SegmentEnd {
  type: 'end'
  sequence: number
  at: string
  /** `waiting` means that the task waits for this caller. */
  how: 'waiting' | 'completed' | 'failed' | 'expired' | 'canceled'
  /** Reason of the wait; null if the task does not wait. */
  reason: string | null
  /** Finish reason of the last model call. */
  finish_reason: string | null
  error: { code: string; message: string } | null
  /** For a canceled task: the calls that had taken effect. */
  receipt: { effects: unknown; uncertain: unknown } | null
  cost_usd: number | null
  /** For a completed task. */
  output: { content: string; data: unknown } | null
  /** Open approvals that it waits for. */
  approval_ids: readonly string[]
}

function stringOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

export interface SegmentBounds {
  first_sequence: number
  resolves: boolean
  /**
   * Whether to treat all segments of the task as one. A wait for a caller is reported as an end, and later events
   * follow it.
   */
  whole?: boolean
}

/**
 * Converts the events of a task to those of one segment. The same events give the same result, whether they come from
 * the journal or live. Live text of a model may be added; it only makes text chunks available earlier.
 */
export class SegmentFold {
  readonly usage: SegmentUsage = { input_tokens: 0, output_tokens: 0, cached_tokens: 0, reasoning_tokens: 0 }
  ended = false
  /** Time of the last event. */
  at = ''
  readonly #bounds: SegmentBounds
  #call: { sequence: number; message_id: string; started: boolean; fed: number; k: number; cutter: Cutter } | undefined
  #started = false
  #finishReason: string | null = null
  readonly #openCalls = new Set<string>()
  readonly #doneCalls = new Set<string>()

  constructor(bounds: SegmentBounds) {
    this.#bounds = bounds
  }

  /** The message that a running model call writes. */
  get writing(): string | undefined {
    return this.#call?.message_id
  }

  /** Applies the text so far of the message that is being written. */
  text(message_id: string, text: string): Happening[] {
    const call = this.#call
    if (this.ended || !call || call.message_id !== message_id || text.length <= call.fed) return []
    return this.#feed(text)
  }

  /** Applies an event of the task; events must be in order. `facts` are required for some types. */
  event({ sequence, type, created_at, data }: TaskEvent, facts: StepFacts = {}): Happening[] {
    if (this.ended || sequence < this.#bounds.first_sequence) return []
    this.at = created_at
    const all: Happening[] = sequence === this.#bounds.first_sequence ? [{ type: 'began', sequence }] : []
    const step_id = stringOf(data['step_id'])
    switch (type) {
      case 'task.started':
      case 'task.resumed':
        if (!this.#started || this.#bounds.whole) all.push({ type: 'running', sequence })
        this.#started = true
        return all
      case 'step.started':
        if (data['type'] === 'model_call' && typeof data['message_id'] === 'string')
          this.#call = {
            ...{ sequence, message_id: data['message_id'], started: false, fed: 0, k: 0 },
            cutter: makeCutter(),
          }
        if (this.#call?.sequence === sequence)
          all.push({ type: 'model_call', sequence, message_id: this.#call.message_id })
        if (typeof facts.question === 'string') all.push({ type: 'question', sequence, step_id, text: facts.question })
        if (facts.is_delegation) all.push(...this.#startedCall(sequence, step_id, String(data['name']), facts))
        return all
      case 'step.completed':
        this.#count(data['usage'])
        if (facts.is_delegation) all.push(...this.#doneCall(sequence, step_id, String(data['name']), facts))
        return all
      case 'step.failed':
        if (data['type'] === 'model_call') this.#call = undefined
        if (facts.is_delegation) all.push(...this.#doneCall(sequence, step_id, String(data['name']), facts))
        return all
      case 'message.completed':
        if (data['role'] !== 'assistant') return all
        this.#finishReason = facts.finish_reason ?? null
        return [...all, ...this.#completed(sequence, String(data['message_id']), stringOf(data['content']))]
      case 'message.discarded':
        return [...all, ...this.#discarded(sequence, String(data['message_id']))]
      case 'tool.called':
        return [...all, ...this.#startedCall(sequence, step_id, String(data['tool']), facts)]
      case 'tool.completed':
      case 'tool.failed': {
        const error = type === 'tool.failed' ? (facts.error ?? { code: 'tool_failed', message: '' }) : null
        return [...all, ...this.#doneCall(sequence, step_id, String(data['tool']), { ...facts, error })]
      }
      case 'tool.resolved':
        if (!facts.is_projects) return all
        return [...all, ...this.#doneCall(sequence, step_id, String(data['tool']), facts)]
      case 'tool.requested': {
        if (facts.is_projects) return [...all, ...this.#startedCall(sequence, step_id, String(data['tool']), facts)]
        const call_id = String(data['call_id'])
        return [
          ...all,
          { type: 'caller_call', sequence, call_id, tool: String(data['tool']), arguments: facts.arguments ?? {} },
        ]
      }
      case 'approval.requested':
        if (!this.#bounds.resolves) return all
        return [
          ...all,
          {
            ...{ type: 'approval' as const, sequence, approval_id: String(data['approval_id']) },
            ...{ tool: String(data['tool']), arguments: data['arguments'] ?? {} },
          },
        ]
      case 'task.waiting':
        return [...all, ...this.#waiting(sequence, created_at, data, facts)]
      case 'task.completed':
      case 'task.failed':
      case 'task.expired':
      case 'task.canceled':
        return [...all, ...this.#ended(sequence, created_at, type.slice('task.'.length) as 'completed', data)]
      default:
        return all
    }
  }

  #feed(text: string): Happening[] {
    const call = this.#call!
    const all: Happening[] = this.#begin()
    const pieces = call.cutter.push(text.slice(call.fed))
    call.fed = text.length
    return [...all, ...this.#deltas(pieces)]
  }

  #deltas(pieces: readonly string[]): Happening[] {
    const call = this.#call!
    const { sequence, message_id } = call
    return pieces.map((text) => ({ type: 'text.delta', sequence, message_id, k: call.k++, text }))
  }

  #begin(): Happening[] {
    const call = this.#call!
    if (call.started) return []
    call.started = true
    return [{ type: 'text.started', sequence: call.sequence, message_id: call.message_id }]
  }

  #completed(sequence: number, message_id: string, content: string): Happening[] {
    if (this.#call?.message_id !== message_id) {
      // The segment started while the model was writing.
      if (content === '') return []
      const pieces = cutWhole(content)
      return [
        { type: 'text.started', sequence, message_id },
        ...pieces.map((text, k): Happening => ({ type: 'text.delta', sequence, message_id, k, text })),
        { type: 'text.done', sequence, message_id, text: content },
      ]
    }
    const all = content === '' && !this.#call.started ? [] : this.#feed(content)
    if (this.#call.started)
      all.push(...this.#deltas(this.#call.cutter.end()), { type: 'text.done', sequence, message_id, text: content })
    this.#call = undefined
    return all
  }

  #discarded(sequence: number, message_id: string): Happening[] {
    if (this.#call?.message_id !== message_id) return []
    const all: Happening[] = [...this.#begin(), { type: 'text.void', sequence, message_id }]
    this.#call = undefined
    return all
  }

  #startedCall(sequence: number, step_id: string, tool: string, facts: StepFacts): Happening[] {
    // A call that is repeated after a crash is the same call.
    if (this.#openCalls.has(step_id) || this.#doneCalls.has(step_id)) return []
    this.#openCalls.add(step_id)
    const { approval_id = null } = facts
    return [{ type: 'server_call.started', sequence, step_id, tool, arguments: facts.arguments ?? {}, approval_id }]
  }

  #doneCall(sequence: number, step_id: string, tool: string, facts: StepFacts): Happening[] {
    const started = this.#startedCall(sequence, step_id, tool, facts)
    if (this.#doneCalls.has(step_id)) return []
    this.#doneCalls.add(step_id)
    this.#openCalls.delete(step_id)
    const { output = null, error = null } = facts
    return [...started, { type: 'server_call.done', sequence, step_id, output, error }]
  }

  /** Errors for calls that have no result when the segment ends. */
  #undone(sequence: number, error: { code: string; message: string }): Happening[] {
    return [...this.#openCalls].map((step_id) => ({ type: 'server_call.done', sequence, step_id, output: null, error }))
  }

  #waiting(sequence: number, at: string, data: TaskEvent['data'], facts: StepFacts): Happening[] {
    const wait = data['wait'] as { reason?: unknown; approval_ids?: string[] } | undefined
    const reason = String(wait?.reason)
    const isCallers =
      // The task waits for calls of the caller and of the project together.
      (reason === 'tool' && facts.waits_for_caller !== false && this.#openCalls.size === 0) ||
      reason === 'input' ||
      (this.#bounds.resolves && ['approval', 'unknown_outcome'].includes(reason))
    if (!isCallers) return [{ type: 'waiting', sequence, reason }]
    const { approval_ids = [] } = wait ?? {}
    const nothing = { error: null, receipt: null, cost_usd: null, output: null }
    const message = 'The call had no result yet when this response ended.'
    const undone = this.#bounds.whole ? [] : this.#undone(sequence, { code: 'no_result_yet', message })
    return [...undone, ...this.#end({ sequence, at, how: 'waiting', reason, ...nothing, approval_ids })]
  }

  #ended(sequence: number, at: string, how: 'completed' | 'failed' | 'expired' | 'canceled', data: TaskEvent['data']) {
    const usage = data['usage'] as { cost_usd?: number | null } | undefined
    const error = data['error'] as { code: string; message: string } | undefined
    const output = how === 'completed' ? (data['output'] as SegmentEnd['output']) : null
    const receipt = how === 'canceled' ? { effects: data['effects'], uncertain: data['uncertain'] } : null
    const void_ = this.#call?.started ? this.#discarded(sequence, this.#call.message_id) : []
    return [
      ...void_,
      ...this.#undone(sequence, { code: 'task_ended', message: 'The task ended before this call.' }),
      ...this.#end({
        sequence,
        at,
        how,
        reason: null,
        error: error ?? null,
        receipt,
        cost_usd: usage?.cost_usd ?? null,
        output,
        approval_ids: [],
      }),
    ]
  }

  #end(end: Omit<SegmentEnd, 'type' | 'finish_reason'>): Happening[] {
    this.ended = end.how !== 'waiting' || this.#bounds.whole !== true
    return [{ type: 'end', finish_reason: this.#finishReason, ...end }]
  }

  #count(used: unknown): void {
    if (typeof used !== 'object' || used === null) return
    for (const name of Object.keys(this.usage) as (keyof SegmentUsage)[])
      this.usage[name] += Number((used as Record<string, unknown>)[name] ?? 0)
  }
}
