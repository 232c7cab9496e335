import type { DoorResponse } from '../door-responses.queries.ts'
import type { Happening, SegmentEnd, SegmentFold } from '../segment-fold.ts'

/** A frame of a response's stream: `data` with its `type` and `sequence_number`. */
export interface ResponseFrame {
  type: string
  sequence_number: number
  [member: string]: unknown
}

type Item = Record<string, unknown> & { id: string; type: string }
type Status = 'queued' | 'in_progress' | 'completed' | 'failed' | 'incomplete' | 'cancelled'

/**
 * Numbers reserved per stored event: first for the frames made from it, then for the text deltas of the model call
 * that it started.
 */
const numbersPerEvent = 2 ** 17
const framesPerEvent = 16

/**
 * Required numbers and texts of Open Responses that may not be null: their values if neither the request nor the
 * agent sets them. The provider of the model then gets none of them.
 */
const unset = {
  ...{ temperature: 1, top_p: 1, presence_penalty: 0, frequency_penalty: 0, top_logprobs: 0 },
  ...{ truncation: 'disabled', service_tier: 'default' },
}

type ShownResponse = DoorResponse & { agent_version: number; has_schema: boolean }

/** The state of a segment as a response of the OpenAI protocol, and the frames of its stream. */
export class ResponseState {
  readonly output: Item[] = []
  status: Status
  readonly #of: ShownResponse
  readonly #fold: SegmentFold
  readonly #places = new Map<string, number>()
  /** Frames made from one durable event so far. */
  #offset = { sequence: 0, frames: 0 }
  #end: SegmentEnd | undefined
  #wait: string | null = null
  #shows: boolean

  constructor(of: ShownResponse, fold: SegmentFold, { showsToolOutput = true } = {}) {
    this.#of = of
    this.#fold = fold
    this.#shows = showsToolOutput
    this.status = of.request['background'] === true && of.ordinal === 1 ? 'queued' : 'in_progress'
  }

  /** The current response object. */
  view(): Record<string, unknown> {
    const { id, created_at, request, previous, conversation, task_id, agent_version, store } = this.#of
    const end = this.#end
    const { background = false, ...asked } = request
    const { input_tokens, output_tokens, cached_tokens, reasoning_tokens } = this.#fold.usage
    return {
      id,
      object: 'response',
      created_at: seconds(created_at),
      completed_at: this.status === 'completed' && end ? seconds(end.at) : null,
      status: this.status,
      background,
      error:
        this.status === 'failed'
          ? { code: end?.error?.code ?? 'server_error', message: end?.error?.message ?? '' }
          : null,
      incomplete_details: this.#incomplete(),
      previous_response_id: previous,
      ...(conversation === null ? {} : { conversation: { id: conversation } }),
      store,
      ...unset,
      ...asked,
      output: this.output,
      usage: end
        ? {
            input_tokens,
            input_tokens_details: { cached_tokens },
            output_tokens,
            output_tokens_details: { reasoning_tokens },
            total_tokens: input_tokens + output_tokens,
          }
        : null,
      cadre: {
        task_id,
        agent_version,
        cost_usd: end?.cost_usd ?? null,
        wait: end?.reason ?? this.#wait,
        receipt: end?.receipt ?? null,
      },
    }
  }

  #incomplete(): { reason: string } | null {
    if (this.status === 'cancelled') return { reason: 'cancelled' }
    if (this.status !== 'incomplete') return null
    return { reason: this.#end?.finish_reason === 'content_filter' ? 'content_filter' : 'max_output_tokens' }
  }

  /** Applies an event and returns its frames. */
  take(happening: Happening): ResponseFrame[] {
    const { sequence } = happening
    switch (happening.type) {
      case 'began':
        return [
          this.#frame(sequence, 'response.created', { response: this.view() }),
          ...(this.status === 'queued' ? [this.#frame(sequence, 'response.queued', { response: this.view() })] : []),
        ]
      case 'running':
        this.status = 'in_progress'
        return [this.#frame(sequence, 'response.in_progress', { response: this.view() })]
      case 'model_call':
        return []
      case 'text.started':
        return this.#begunText(sequence, happening.message_id)
      case 'text.delta': {
        const place = {
          item_id: happening.message_id,
          output_index: this.#index(happening.message_id),
          content_index: 0,
        }
        const number = this.#base(sequence) + framesPerEvent + happening.k
        return [
          {
            ...{ type: 'response.output_text.delta', sequence_number: number, ...place },
            ...{ delta: happening.text, logprobs: [] },
          },
        ]
      }
      case 'text.done':
        this.#texts.push(happening.message_id)
        return this.#doneText(sequence, happening.message_id, happening.text, 'completed')
      case 'text.void':
        return this.#voidText(sequence, happening.message_id)
      case 'server_call.started':
        return this.#startedCall(happening)
      case 'server_call.done':
        return this.#doneCall(happening)
      case 'caller_call':
        return this.#callerCall(happening)
      case 'approval': {
        const { label, name } = nameOf(happening.tool)
        return this.#whole(sequence, {
          ...{ id: approvalItemId(happening.approval_id), type: 'mcp_approval_request' },
          ...{ server_label: label, name, arguments: JSON.stringify(happening.arguments) },
        })
      }
      case 'question':
        return this.#question(sequence, happening.step_id, happening.text)
      case 'waiting':
        this.#wait = happening.reason
        return []
      case 'end':
        return this.#ended(happening)
    }
  }

  #begunText(sequence: number, id: string): ResponseFrame[] {
    const item: Item = { id, type: 'message', status: 'in_progress', role: 'assistant', content: [] }
    return [
      this.#added(sequence, item),
      this.#frame(sequence, 'response.content_part.added', { ...this.#place(id), part: part('') }),
    ]
  }

  #doneText(sequence: number, id: string, text: string, status: 'completed' | 'incomplete'): ResponseFrame[] {
    const item: Item = { id, type: 'message', status, role: 'assistant', content: [part(text)] }
    return [
      this.#frame(sequence, 'response.output_text.done', { ...this.#place(id), text, logprobs: [] }),
      this.#frame(sequence, 'response.content_part.done', { ...this.#place(id), part: part(text) }),
      this.#done(sequence, item),
    ]
  }

  /** Ends a void message without its text, which a replay would not have. */
  #voidText(sequence: number, id: string): ResponseFrame[] {
    const frames = this.#doneText(sequence, id, '', 'incomplete')
    this.#voided.add(id)
    return frames
  }
  readonly #voided = new Set<string>()
  /** Complete messages of the model. */
  readonly #texts: string[] = []

  #startedCall({ sequence, step_id, tool, approval_id, ...call }: Extract<Happening, { type: 'server_call.started' }>) {
    const { label, name } = nameOf(tool)
    const id = callItemId(step_id)
    const text = JSON.stringify(call.arguments)
    const item: Item = {
      ...{ id, type: 'mcp_call', server_label: label, name, arguments: '', status: 'in_progress' },
      ...{ output: null, error: null, approval_request_id: approval_id === null ? null : approvalItemId(approval_id) },
    }
    const frames = [
      this.#added(sequence, item),
      this.#frame(sequence, 'response.mcp_call.in_progress', this.#itemPlace(id)),
      this.#frame(sequence, 'response.mcp_call_arguments.delta', { ...this.#itemPlace(id), delta: text }),
      this.#frame(sequence, 'response.mcp_call_arguments.done', { ...this.#itemPlace(id), arguments: text }),
    ]
    this.output[this.#index(id)] = { ...item, arguments: text }
    return frames
  }

  #doneCall({ sequence, step_id, output, error }: Extract<Happening, { type: 'server_call.done' }>): ResponseFrame[] {
    const id = callItemId(step_id)
    const item = {
      ...this.output[this.#index(id)]!,
      status: error ? 'failed' : 'completed',
      output: error || !this.#shows ? null : output,
      error: error ? error.message || error.code : null,
    }
    return [
      this.#frame(sequence, error ? 'response.mcp_call.failed' : 'response.mcp_call.completed', this.#itemPlace(id)),
      this.#done(sequence, item),
    ]
  }

  #callerCall({ sequence, call_id, tool, ...call }: Extract<Happening, { type: 'caller_call' }>): ResponseFrame[] {
    const id = `fc_${call_id.slice('call_'.length)}`
    const text = JSON.stringify(call.arguments)
    const item: Item = { id, type: 'function_call', call_id, name: tool, arguments: '', status: 'in_progress' }
    const added = this.#added(sequence, item)
    return [
      added,
      this.#frame(sequence, 'response.function_call_arguments.delta', { ...this.#itemPlace(id), delta: text }),
      this.#frame(sequence, 'response.function_call_arguments.done', {
        ...this.#itemPlace(id),
        ...{ name: tool, arguments: text },
      }),
      this.#done(sequence, { ...item, arguments: text, status: 'completed' }),
    ]
  }

  #question(sequence: number, step_id: string, text: string): ResponseFrame[] {
    const id = `msg_${step_id.slice('step_'.length)}`
    return [
      ...this.#begunText(sequence, id),
      this.#frame(sequence, 'response.output_text.delta', { ...this.#place(id), delta: text, logprobs: [] }),
      ...this.#doneText(sequence, id, text, 'completed'),
    ]
  }

  #whole(sequence: number, item: Item): ResponseFrame[] {
    return [this.#added(sequence, item), this.#done(sequence, item)]
  }

  #ended(end: SegmentEnd): ResponseFrame[] {
    this.#end = end
    const wasCut = end.finish_reason === 'length' || end.finish_reason === 'content_filter'
    if (end.how === 'canceled') this.status = 'cancelled'
    else if (end.how === 'failed' || end.how === 'expired') this.status = 'failed'
    else this.status = end.how === 'completed' && wasCut ? 'incomplete' : 'completed'
    // With an output schema only the last text is the answer, because clients parse all texts together as JSON.
    if (this.#of.has_schema && end.how !== 'waiting') for (const id of this.#texts.slice(0, -1)) this.#voided.add(id)
    // Void messages appear only in the stream, not in the final object.
    const counted = this.output.filter(({ id }) => !this.#voided.has(id))
    this.output.splice(0, this.output.length, ...counted)
    const type = this.status === 'completed' || this.status === 'failed' ? this.status : 'incomplete'
    return [this.#frame(end.sequence, `response.${type}`, { response: this.view() })]
  }

  #added(sequence: number, item: Item): ResponseFrame {
    const output_index = this.output.push(item) - 1
    this.#places.set(item.id, output_index)
    return this.#frame(sequence, 'response.output_item.added', { output_index, item })
  }

  #done(sequence: number, item: Item): ResponseFrame {
    const output_index = this.#index(item.id)
    this.output[output_index] = item
    return this.#frame(sequence, 'response.output_item.done', { output_index, item })
  }

  #index(id: string): number {
    return this.#places.get(id) ?? -1
  }

  #place(id: string) {
    return { item_id: id, output_index: this.#index(id), content_index: 0 }
  }

  #itemPlace(id: string) {
    return { item_id: id, output_index: this.#index(id) }
  }

  #base(sequence: number): number {
    return (sequence - this.#of.first_sequence) * numbersPerEvent
  }

  #frame(sequence: number, type: string, data: object): ResponseFrame {
    if (this.#offset.sequence !== sequence) this.#offset = { sequence, frames: 0 }
    const sequence_number = this.#base(sequence) + this.#offset.frames
    this.#offset.frames += 1
    return { type, sequence_number, ...data }
  }
}

function part(text: string) {
  return { type: 'output_text', text, annotations: [], logprobs: [] }
}

function seconds(at: string): number {
  return Math.floor(Date.parse(at) / 1000)
}

/** Splits the name of a tool into its server or document and the tool of it. */
export function nameOf(tool: string): { label: string; name: string } {
  const slash = tool.indexOf('/')
  return slash < 0 ? { label: 'cadre', name: tool } : { label: tool.slice(0, slash), name: tool.slice(slash + 1) }
}

function callItemId(step_id: string): string {
  return `mcp_${step_id.slice('step_'.length)}`
}

function approvalItemId(approval_id: string): string {
  return `mcpr_${approval_id.slice('appr_'.length)}`
}

/** The approval id in the id of an item. */
export function approvalOfItem(id: string): string {
  return `appr_${id.replace(/^mcpr_/, '')}`
}
