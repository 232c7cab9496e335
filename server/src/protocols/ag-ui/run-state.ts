import { EventType, type Event, type Interrupt, type Message } from '@ag-ui/core'
import type { FoundResponse } from '../door-responses.queries.ts'
import type { Happening, SegmentEnd, SegmentFold } from '../segment-fold.ts'
import type { OpenApproval } from './runs.queries.ts'

/** An event of a run with its number, which is the same in every replay. */
export interface RunFrame {
  number: number
  event: Event
}

/**
 * Numbers reserved per stored event: first for the frames made from it, then for the text deltas of the model call
 * that it started.
 */
const numbersPerEvent = 2 ** 17
const framesPerEvent = 16

/** The state of a segment as an AG-UI run, and the frames of its stream. */
export class RunState {
  readonly #of: Pick<FoundResponse, 'task_id' | 'first_sequence' | 'agent_version'>
  readonly #names: { threadId: string; runId: string }
  readonly #fold: SegmentFold
  /** The conversation as the client has it. */
  readonly #messages: Message[]
  #offset = { sequence: 0, frames: 0 }
  #step: string | undefined
  #steps = 0
  #text: string | undefined
  readonly #questions = new Map<string, string>()
  readonly #approvals: string[] = []
  readonly #calls: string[] = []

  constructor(of: FoundResponse, fold: SegmentFold) {
    const { thread_id: threadId, run_id: runId } = of.request as { thread_id: string; run_id: string }
    this.#of = of
    this.#names = { threadId, runId }
    this.#fold = fold
    this.#messages = [...(of.input as Message[])]
  }

  /** Approvals that the last event of the run must contain. */
  asks(happening: Happening): readonly string[] {
    if (happening.type !== 'end' || happening.how !== 'waiting') return []
    return [...new Set([...this.#approvals, ...happening.approval_ids])]
  }

  /** Applies an event and returns its frames. `asked` are the approvals that `asks` returned. */
  take(happening: Happening, asked: readonly OpenApproval[] = []): RunFrame[] {
    const { sequence } = happening
    switch (happening.type) {
      case 'began':
        return [this.#frame(sequence, { type: EventType.RUN_STARTED, ...this.#names })]
      case 'model_call': {
        const ended = this.#endStep(sequence)
        this.#steps += 1
        this.#step = `model_call_${this.#steps}`
        return [...ended, this.#frame(sequence, { type: EventType.STEP_STARTED, stepName: this.#step })]
      }
      case 'text.started': {
        const { message_id: messageId } = happening
        this.#text = messageId
        return [this.#frame(sequence, { type: EventType.TEXT_MESSAGE_START, messageId, role: 'assistant' })]
      }
      case 'text.delta': {
        const number = this.#base(sequence) + framesPerEvent + happening.k
        const { message_id: messageId, text: delta } = happening
        return [{ number, event: { type: EventType.TEXT_MESSAGE_CONTENT, messageId, delta } }]
      }
      case 'text.done':
        this.#messages.push({ id: happening.message_id, role: 'assistant', content: happening.text })
        return this.#endText(sequence)
      case 'text.void': {
        const { message_id: messageId } = happening
        const value = { messageId }
        return [
          ...this.#endText(sequence),
          this.#frame(sequence, { type: EventType.CUSTOM, name: 'cadre.discarded', value }),
          this.#frame(sequence, { type: EventType.MESSAGES_SNAPSHOT, messages: [...this.#messages] }),
        ]
      }
      case 'server_call.started':
        return this.#call(sequence, happening.step_id, happening.tool, happening.arguments)
      case 'server_call.done': {
        const { step_id: toolCallId, output, error } = happening
        const content = error ? error.message || error.code : (output ?? '')
        const messageId = `result_${toolCallId}`
        this.#messages.push({ id: messageId, role: 'tool', toolCallId, content })
        return [
          this.#frame(sequence, { type: EventType.TOOL_CALL_RESULT, messageId, toolCallId, content, role: 'tool' }),
        ]
      }
      case 'caller_call':
        this.#calls.push(happening.call_id)
        return this.#call(sequence, happening.call_id, happening.tool, happening.arguments)
      case 'approval':
        this.#approvals.push(happening.approval_id)
        return []
      case 'question':
        this.#questions.set(happening.step_id, happening.text)
        return []
      case 'waiting': {
        const value = { reason: happening.reason }
        return [this.#frame(sequence, { type: EventType.CUSTOM, name: 'cadre.wait', value })]
      }
      case 'end':
        return this.#ended(happening, asked)
      default:
        return []
    }
  }

  #call(sequence: number, toolCallId: string, toolCallName: string, given: unknown): RunFrame[] {
    const text = JSON.stringify(given ?? {})
    const call = { id: toolCallId, type: 'function' as const, function: { name: toolCallName, arguments: text } }
    const last = this.#messages.at(-1)
    if (last?.role === 'assistant') last.toolCalls = [...(last.toolCalls ?? []), call]
    else this.#messages.push({ id: `calls_${toolCallId}`, role: 'assistant', toolCalls: [call] })
    const parentMessageId = this.#messages.at(-1)!.id
    return [
      this.#frame(sequence, { type: EventType.TOOL_CALL_START, toolCallId, toolCallName, parentMessageId }),
      this.#frame(sequence, { type: EventType.TOOL_CALL_ARGS, toolCallId, delta: text }),
      this.#frame(sequence, { type: EventType.TOOL_CALL_END, toolCallId }),
    ]
  }

  #endText(sequence: number): RunFrame[] {
    const messageId = this.#text
    if (messageId === undefined) return []
    this.#text = undefined
    return [this.#frame(sequence, { type: EventType.TEXT_MESSAGE_END, messageId })]
  }

  #endStep(sequence: number): RunFrame[] {
    const stepName = this.#step
    if (stepName === undefined) return []
    this.#step = undefined
    return [this.#frame(sequence, { type: EventType.STEP_FINISHED, stepName })]
  }

  #ended(end: SegmentEnd, asked: readonly OpenApproval[]): RunFrame[] {
    const { sequence } = end
    return [...this.#endText(sequence), ...this.#endStep(sequence), this.#frame(sequence, this.#last(end, asked))]
  }

  #last({ how, error, output }: SegmentEnd, asked: readonly OpenApproval[]): Event {
    if (how === 'canceled') return { type: EventType.RUN_ERROR, message: 'The run was canceled.', code: 'canceled' }
    if (how === 'failed' || how === 'expired')
      return { type: EventType.RUN_ERROR, message: error?.message ?? 'The run failed.', code: error?.code ?? how }
    const { input_tokens: inputTokens, output_tokens: outputTokens } = this.#fold.usage
    const usage = [{ inputTokens, outputTokens, totalTokens: inputTokens + outputTokens }]
    const finished = { type: EventType.RUN_FINISHED as const, ...this.#names, usage }
    if (how === 'completed') {
      const { data } = output ?? { data: null }
      return { ...finished, ...(data != null && { result: data }), outcome: { type: 'success' } }
    }
    const interrupts = this.#interrupts(asked)
    if (interrupts.length === 0)
      return { ...finished, outcome: { type: 'success', pendingToolCallIds: [...this.#calls] } }
    return { ...finished, outcome: { type: 'interrupt', interrupts: [...interrupts, ...this.#callInterrupts()] } }
  }

  #interrupts(asked: readonly OpenApproval[]): Interrupt[] {
    const approvals = asked.map((approval): Interrupt => {
      const { id, kind, tool, arguments: given, parameters, expires_at } = approval
      const message =
        kind === 'recovery' ? `The outcome of ${tool} is unknown. Repeat the call?` : `May ${tool} be called?`
      return {
        ...{ id, reason: 'confirmation', message, metadata: { tool, arguments: given, kind } },
        // A decision may edit the arguments.
        ...(kind === 'tool_call' && { responseSchema: parameters ?? { type: 'object' } }),
        ...(expires_at !== null && { expiresAt: expires_at }),
      }
    })
    const questions = [...this.#questions].map(([id, message]): Interrupt => ({
      ...{ id, reason: 'input_required', message },
      responseSchema: { type: 'object', properties: { answer: { type: 'string' } }, required: ['answer'] },
    }))
    return [...approvals, ...questions]
  }

  #callInterrupts(): Interrupt[] {
    return this.#calls.map((id) => ({ id, reason: 'tool_call', toolCallId: id }))
  }

  #base(sequence: number): number {
    return (sequence - this.#of.first_sequence) * numbersPerEvent
  }

  #frame(sequence: number, event: Event): RunFrame {
    if (this.#offset.sequence !== sequence) this.#offset = { sequence, frames: 0 }
    const number = this.#base(sequence) + this.#offset.frames
    this.#offset.frames += 1
    return { number, event }
  }
}
