import type { TaskEvent } from '../events/streams/streams-hub.ts'
import { cutWhole, makeCutter, type Cutter } from './canonical-deltas.ts'

/** What an event of a step says beyond its data: read from the journal, where it is stored once. */
export interface StepFacts {
  arguments?: unknown
  output?: string | null
  error?: { code: string; message: string } | null
  approval_id?: string | null
  finish_reason?: string | null
  question?: string | null
  /** A call of a tool of the project, which its processes make. */
  is_projects?: true | null
  /** A call that is a task of another agent. */
  is_delegation?: boolean
  /** Of a wait for tools: one of them is the caller's. */
  waits_for_caller?: boolean
}

/** Tokens of the model calls of a segment. */
export interface SegmentUsage {
  input_tokens: number
  output_tokens: number
  cached_tokens: number
  reasoning_tokens: number
}

/** What happens in a segment, in the words that all doors translate. `sequence` is that of the durable event. */
export type Happening =
  | { type: 'began'; sequence: number }
  | { type: 'running'; sequence: number }
  /** A model is asked; what follows is its answer. */
  | { type: 'model_call'; sequence: number; message_id: string }
  | { type: 'text.started'; sequence: number; message_id: string }
  /** Piece `k`, from 0, of the text of the model call that began with the event `sequence`. */
  | { type: 'text.delta'; sequence: number; message_id: string; k: number; text: string }
  | { type: 'text.done'; sequence: number; message_id: string; text: string }
  /** The text so far is void; the model is asked again, or the task has ended. */
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
  /** It waits for another than this caller, and goes on after that one's answer. */
  | { type: 'waiting'; sequence: number; reason: string }
  | SegmentEnd

export interface SegmentEnd {
  type: 'end'
  sequence: number
  at: string
  /** `waiting`: the task waits for this caller. */
  how: 'waiting' | 'completed' | 'failed' | 'expired' | 'canceled'
  /** Why it waits, where it does. */
  reason: string | null
  /** Why the model stopped, of the last call. */
  finish_reason: string | null
  error: { code: string; message: string } | null
  /** Of a canceled task: what had taken effect. */
  receipt: { effects: unknown; uncertain: unknown } | null
  cost_usd: number | null
  /** Of a completed task. */
  output: { content: string; data: unknown } | null
  /** Why it waits for approvals: those that are open. */
  approval_ids: readonly string[]
}

function stringOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

export interface SegmentBounds {
  first_sequence: number
  resolves: boolean
  /** All segments of the task as one: a wait for a caller reads as an end, and what follows it is included. */
  whole?: boolean
}

/**
 * Turns the events of a task into what happens in one segment of it. The same events give the same happenings, whether they
 * come from the journal or as they are written; text that a model is writing right now may come in addition, and changes
 * nothing but when pieces are known.
 */
export class SegmentFold {
  readonly usage: SegmentUsage = { input_tokens: 0, output_tokens: 0, cached_tokens: 0, reasoning_tokens: 0 }
  ended = false
  /** When the event happened that was read last. */
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

  /** The message that is being written, where a model call is under way. */
  get writing(): string | undefined {
    return this.#call?.message_id
  }

  /** Text of the message that is being written, from its beginning. */
  text(message_id: string, text: string): Happening[] {
    const call = this.#call
    if (this.ended || !call || call.message_id !== message_id || text.length <= call.fed) return []
    return this.#feed(text)
  }

  /** An event of the task, in order; `facts` of those that need them. */
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
      // The segment began while the model was writing.
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
    // A call that is made again after a crash is the same call.
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

  /** What becomes of calls that are not done when the segment ends. */
  #undone(sequence: number, error: { code: string; message: string }): Happening[] {
    return [...this.#openCalls].map((step_id) => ({ type: 'server_call.done', sequence, step_id, output: null, error }))
  }

  #waiting(sequence: number, at: string, data: TaskEvent['data'], facts: StepFacts): Happening[] {
    const wait = data['wait'] as { reason?: unknown; approval_ids?: string[] } | undefined
    const reason = String(wait?.reason)
    const isCallers =
      // The caller's calls come to rest together with those of the project: the task waits for both.
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
      ...this.#undone(sequence, { code: 'task_ended', message: 'The task ended before this did.' }),
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
