import { parseJson } from '../../platform/parse-json.ts'
import type { Happening, SegmentEnd, SegmentFold } from '../segment-fold.ts'

/** Members of every chunk of a completion. */
interface ChatTask {
  task_id: string
  agent_version: number
  model: unknown
  /** Seconds since 1970. */
  created: number
}

/** A segment as a chat completion of the OpenAI protocol, whole or in chunks. */
export class ChatState {
  /** Whether nothing may follow: the segment has ended, or text was sent that cannot be withdrawn. */
  over = false
  /** HTTP status and error if there is no completion. */
  failure: { status: number; error: { message: string; type: string; param: null; code: string } } | undefined
  readonly #of: ChatTask
  readonly #fold: SegmentFold
  readonly #progress: boolean
  readonly #calls: { id: string; type: 'function'; function: { name: string; arguments: string } }[] = []
  readonly #hasSchema: boolean
  #text = ''
  /** With an output schema: the last text of the model, which is the answer only if nothing follows. */
  #held = ''
  #reasoning = ''
  #finish: SegmentEnd | undefined
  /** Whether the client has text of the model call that is running. */
  #hasSaid = false

  constructor(of: ChatTask, fold: SegmentFold, { progress = false, hasSchema = false } = {}) {
    this.#of = of
    this.#fold = fold
    this.#progress = progress
    this.#hasSchema = hasSchema
  }

  /** Applies an event and returns its chunks. */
  take(happening: Happening): object[] {
    switch (happening.type) {
      case 'began':
        return [{ role: 'assistant', content: '' }]
      case 'text.started':
        this.#held = ''
        this.#hasSaid = false
        return []
      case 'text.delta': {
        if (this.#hasSchema) {
          this.#held += happening.text
          return []
        }
        const gap = this.#hasSaid || this.#text === '' ? [] : this.#say('\n\n')
        this.#hasSaid = true
        return [...gap, ...this.#say(happening.text)]
      }
      case 'text.void':
        this.#held = ''
        // A chat cannot withdraw text, but none was sent.
        if (!this.#hasSaid) return []
        this.#fail(
          500,
          'server_error',
          'stream_reset',
          `The model restarted its answer, and the text so far is void. Read the answer from task ${this.#of.task_id}.`,
        )
        return []
      case 'question':
        return this.#say(this.#text === '' ? happening.text : `\n\n${happening.text}`)
      case 'server_call.started': {
        if (!this.#progress) return []
        const line = `${happening.tool}\n`
        this.#reasoning += line
        return [{ reasoning_content: line }]
      }
      case 'caller_call': {
        const call = {
          ...{ id: happening.call_id, type: 'function' as const },
          function: { name: happening.tool, arguments: JSON.stringify(happening.arguments) },
        }
        this.#calls.push(call)
        return [{ tool_calls: [{ index: this.#calls.length - 1, ...call }] }]
      }
      case 'waiting':
        if (happening.reason === 'budget')
          this.#fail(
            429,
            'insufficient_quota',
            'insufficient_quota',
            `A budget is exhausted; task ${this.#of.task_id} waits for it.`,
          )
        return []
      case 'end':
        this.#ended(happening)
        return happening.how === 'waiting' || !this.#hasSchema
          ? []
          : this.#say(jsonOf(this.#held, happening.output?.data))
      default:
        return []
    }
  }

  #say(text: string): object[] {
    this.#text += text
    return [{ content: text }]
  }

  #fail(status: number, type: string, code: string, message: string): void {
    this.failure ??= { status, error: { message, type, param: null, code } }
    this.over = true
  }

  #ended(end: SegmentEnd): void {
    this.#finish = end
    this.over = true
    const { how, error } = end
    if (how === 'canceled') this.#fail(500, 'server_error', 'canceled', `Task ${this.#of.task_id} was canceled.`)
    else if (how === 'failed' || how === 'expired')
      this.#fail(500, 'server_error', error?.code ?? 'server_error', error?.message ?? 'The task failed.')
  }

  get finishReason(): string {
    if (this.#calls.length > 0) return 'tool_calls'
    const reason = this.#finish?.finish_reason
    return reason === 'length' || reason === 'content_filter' ? reason : 'stop'
  }

  #common(object: string) {
    const { task_id, agent_version, model, created } = this.#of
    return { id: `chatcmpl-${task_id}`, object, created, model, system_fingerprint: `agent_v${agent_version}` }
  }

  get usage() {
    const { input_tokens, output_tokens, cached_tokens, reasoning_tokens } = this.#fold.usage
    return {
      prompt_tokens: input_tokens,
      completion_tokens: output_tokens,
      total_tokens: input_tokens + output_tokens,
      prompt_tokens_details: { cached_tokens },
      completion_tokens_details: { reasoning_tokens },
    }
  }

  chunk(delta: object, finish_reason: string | null = null, usage: { usage?: null } = {}): object {
    return {
      ...this.#common('chat.completion.chunk'),
      choices: [{ index: 0, delta, logprobs: null, finish_reason }],
      ...usage,
    }
  }

  usageChunk(): object {
    return { ...this.#common('chat.completion.chunk'), choices: [], usage: this.usage }
  }

  /** The whole completion. A failure after the status was sent becomes its `refusal`. */
  whole(): object {
    const message = {
      role: 'assistant',
      content: this.#text === '' && this.#calls.length > 0 ? null : this.#text,
      refusal: this.failure?.error.message ?? null,
      ...(this.#reasoning === '' ? {} : { reasoning_content: this.#reasoning }),
      ...(this.#calls.length > 0 && { tool_calls: this.#calls }),
    }
    return {
      ...this.#common('chat.completion'),
      choices: [{ index: 0, message, logprobs: null, finish_reason: this.finishReason }],
      usage: this.usage,
      ...(this.failure && { cadre: { error: this.failure.error } }),
    }
  }
}

/** The answer of a task with an output schema as plain JSON, because models sometimes wrap it in a code block. */
function jsonOf(text: string, data: unknown): string {
  return data === null || data === undefined || parseJson(text) !== undefined ? text : JSON.stringify(data)
}
