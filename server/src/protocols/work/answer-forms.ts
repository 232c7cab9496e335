import type { CallAnswer } from '../../engine/remote/model-calls.ts'

/** Serializes a model response in a format of the OpenAI protocol, whole or streamed. */
export interface AnswerForm {
  /** The frames before any text. */
  begin(): string[]
  /** The frames for a piece of the text. */
  text(piece: string): string[]
  /** The frames after the text. `isStreamed` says that the text was sent already. */
  end(answer: CallAnswer, isStreamed: boolean): string[]
  fail(error: { message: string; type: string; param: string | null; code: string }): string[]
  whole(answer: CallAnswer): object
}

/** Facts about the request for the response. */
export interface Asked {
  model: unknown
  /** Seconds since 1970. */
  created: number
  /** Whether a streamed chat completion includes the usage. */
  usage: boolean
}

const data = (value: object): string => `data: ${JSON.stringify(value)}\n\n`
const done = 'data: [DONE]\n\n'

function argumentsOf(call: { arguments: unknown }): string {
  return typeof call.arguments === 'string' ? call.arguments : JSON.stringify(call.arguments ?? {})
}

function finishReason({ output }: CallAnswer): string {
  if (output.tool_calls.length > 0) return 'tool_calls'
  const { finish_reason } = output
  return finish_reason === 'length' || finish_reason === 'content_filter' ? finish_reason : 'stop'
}

/** The format of Chat Completions. */
export function chatForm({ model, created, usage }: Asked, id: string): AnswerForm {
  const common = (object: string) => ({ id, object, created, model })
  const chunk = (delta: object, finish_reason: string | null = null): string =>
    data({
      ...common('chat.completion.chunk'),
      choices: [{ index: 0, delta, logprobs: null, finish_reason }],
      ...(usage && { usage: null }),
    })
  const calls = ({ output }: CallAnswer) =>
    output.tool_calls.map((call) => ({
      id: call.id,
      type: 'function' as const,
      function: { name: call.name, arguments: argumentsOf(call) },
    }))
  const usageOf = ({ usage: used }: CallAnswer) => ({
    prompt_tokens: used.input_tokens,
    completion_tokens: used.output_tokens,
    total_tokens: used.input_tokens + used.output_tokens,
    prompt_tokens_details: { cached_tokens: used.cached_tokens },
    completion_tokens_details: { reasoning_tokens: used.reasoning_tokens },
  })
  return {
    begin: () => [chunk({ role: 'assistant', content: '' })],
    text: (piece) => [chunk({ content: piece })],
    end: (answer, isStreamed) => [
      ...(isStreamed || answer.output.text === '' ? [] : [chunk({ content: answer.output.text })]),
      ...calls(answer).map((call, index) => chunk({ tool_calls: [{ index, ...call }] })),
      chunk({}, finishReason(answer)),
      ...(usage ? [data({ ...common('chat.completion.chunk'), choices: [], usage: usageOf(answer) })] : []),
      done,
    ],
    fail: (error) => [data({ error })],
    whole: (answer) => {
      const { text } = answer.output
      const tool_calls = calls(answer)
      const message = {
        role: 'assistant',
        content: text === '' && tool_calls.length > 0 ? null : text,
        refusal: null,
        ...(tool_calls.length > 0 && { tool_calls }),
      }
      return {
        ...common('chat.completion'),
        choices: [{ index: 0, message, logprobs: null, finish_reason: finishReason(answer) }],
        usage: usageOf(answer),
      }
    },
  }
}

/** The format of Responses. `echo` has the members of the request that the response repeats. */
export function responseForm({ model, created }: Asked, id: string, echo: object): AnswerForm {
  const message_id = `msg_${id.slice('resp_'.length)}`
  let number = 0
  const frame = (type: string, more: object): string => {
    const text = `event: ${type}\n${data({ type, sequence_number: number, ...more })}`
    number += 1
    return text
  }
  const base = (status: string, output: object[], more: object = {}) => ({
    ...{ id, object: 'response', created_at: created, status, background: false, error: null },
    ...{ incomplete_details: null, previous_response_id: null, model, parallel_tool_calls: true, tool_choice: 'auto' },
    ...{ tools: [], store: false, text: { format: { type: 'text' } }, metadata: {} },
    ...echo,
    ...{ output, usage: null },
    ...more,
  })
  const part = (text: string) => ({ type: 'output_text', text, annotations: [], logprobs: [] })
  const message = (text: string, status = 'completed') => ({
    ...{ id: message_id, type: 'message', status, role: 'assistant' },
    content: status === 'in_progress' ? [] : [part(text)],
  })
  const calls = ({ output }: CallAnswer) =>
    output.tool_calls.map((call, index) => ({
      ...{ id: `fc_${id.slice('resp_'.length)}_${index}`, type: 'function_call', call_id: call.id, name: call.name },
      ...{ arguments: argumentsOf(call), status: 'completed' },
    }))
  const hasText = ({ output }: CallAnswer): boolean => output.text !== '' || output.tool_calls.length === 0
  const whole = (answer: CallAnswer) => {
    const { input_tokens, output_tokens, cached_tokens, reasoning_tokens } = answer.usage
    const reason = finishReason(answer)
    const isCut = reason === 'length' || reason === 'content_filter'
    const output = [...(hasText(answer) ? [message(answer.output.text)] : []), ...calls(answer)]
    return base(isCut ? 'incomplete' : 'completed', output, {
      completed_at: isCut ? null : created,
      incomplete_details: isCut ? { reason: reason === 'length' ? 'max_output_tokens' : reason } : null,
      usage: {
        input_tokens,
        input_tokens_details: { cached_tokens },
        output_tokens,
        output_tokens_details: { reasoning_tokens },
        total_tokens: input_tokens + output_tokens,
      },
    })
  }
  const place = { item_id: message_id, output_index: 0, content_index: 0 }
  let hasBegun = false
  const beginText = (): string[] => {
    if (hasBegun) return []
    hasBegun = true
    return [
      frame('response.output_item.added', { output_index: 0, item: message('', 'in_progress') }),
      frame('response.content_part.added', { ...place, part: part('') }),
    ]
  }
  const textFrames = (piece: string): string[] => [
    ...beginText(),
    frame('response.output_text.delta', { ...place, delta: piece, logprobs: [] }),
  ]
  return {
    begin: () => [
      frame('response.created', { response: base('in_progress', []) }),
      frame('response.in_progress', { response: base('in_progress', []) }),
    ],
    text: textFrames,
    end(answer, isStreamed) {
      const { text } = answer.output
      const first = hasText(answer) || hasBegun ? 1 : 0
      const said =
        first === 0
          ? []
          : [
              ...(isStreamed || text === '' ? beginText() : textFrames(text)),
              frame('response.output_text.done', { ...place, text, logprobs: [] }),
              frame('response.content_part.done', { ...place, part: part(text) }),
              frame('response.output_item.done', { output_index: 0, item: message(text) }),
            ]
      const called = calls(answer).flatMap((call, index) => {
        const at = { item_id: call.id, output_index: first + index }
        return [
          frame('response.output_item.added', {
            output_index: at.output_index,
            item: { ...call, arguments: '', status: 'in_progress' },
          }),
          frame('response.function_call_arguments.delta', { ...at, delta: call.arguments }),
          frame('response.function_call_arguments.done', { ...at, name: call.name, arguments: call.arguments }),
          frame('response.output_item.done', { output_index: at.output_index, item: call }),
        ]
      })
      const response = whole(answer)
      return [...said, ...called, frame(`response.${response.status}`, { response }), done]
    },
    fail: (error) => [
      frame('response.failed', {
        response: base('failed', [], { error: { code: error.code, message: error.message } }),
      }),
      done,
    ],
    whole,
  }
}
