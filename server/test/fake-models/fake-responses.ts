import {
  asText,
  defaultUsage,
  type FakeAnswer,
  type FakeReasoning,
  type FakeUsage,
  finishOf,
  partsOf,
  words,
} from './fake-answer.ts'
import { secret } from './fake-chat-messages.ts'
import { FakeMemory, type ProducedReasoning } from './strict-memory.ts'
import { effortOf, openaiFacts } from './strict-model-facts.ts'

type Event = { type: string } & Record<string, unknown>
type Item = { id: string; type: string } & Record<string, unknown>

/** An item as it is streamed: how it begins, what comes of it, how it ends. */
interface Streamed {
  started: Item
  events: Event[]
  done: Item
}

/**
 * The events of a streamed answer of OpenAI's Responses. Reasoning comes where the request's model reasons, its summary
 * and what is encrypted of it where they were asked for. `memory` learns what was given away.
 */
export function responsesEvents(
  answer: FakeAnswer,
  request: Record<string, unknown>,
  { memory = new FakeMemory() }: { memory?: FakeMemory } = {},
): string[] {
  const { usage = defaultUsage } = answer
  const items = itemsOf(answer, request, memory)
  remember(items, request, memory)
  const finish = finishOf(answer)
  const incomplete = { length: 'max_output_tokens', content_filter: 'content_filter' }
  const reason = finish === 'length' || finish === 'content_filter' ? incomplete[finish] : undefined
  const started = responseObject(answer, request, memory.id('resp'))
  const events: Event[] = [
    { type: 'response.created', response: started },
    { type: 'response.in_progress', response: started },
    ...items.flatMap((item, output_index) => [
      { type: 'response.output_item.added', output_index, item: item.started },
      ...item.events.map((event) => ({ ...event, item_id: item.done.id, output_index })),
      { type: 'response.output_item.done', output_index, item: item.done },
    ]),
    {
      type: reason === undefined ? 'response.completed' : 'response.incomplete',
      response: {
        ...started,
        status: reason === undefined ? 'completed' : 'incomplete',
        incomplete_details: reason === undefined ? null : { reason },
        output: items.map(({ done }) => done),
        usage: usage && responsesUsage(usage),
      },
    },
  ]
  return events.map((event, sequence_number) => responsesFrame({ ...event, sequence_number }))
}

/** An event of Responses as it goes over the wire. */
export function responsesFrame(event: Event): string {
  return `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`
}

/** The event in which an answer of Responses fails after it has begun. */
export function responsesFailure(
  error: Record<string, unknown>,
  {
    as,
    request,
    sequence_number,
  }: { as: 'error' | 'failed'; request: Record<string, unknown>; sequence_number: number },
): string {
  const code = error['code'] ?? error['type'] ?? null
  const message = error['message'] ?? ''
  if (as === 'error') return responsesFrame({ type: 'error', code, message, param: null, sequence_number })
  const response = { ...responseObject({}, request, 'resp_fake'), status: 'failed', error: { code, message } }
  return responsesFrame({ type: 'response.failed', response, sequence_number })
}

function responseObject(answer: FakeAnswer, request: Record<string, unknown>, id: string): Record<string, unknown> {
  const reasoning = (request['reasoning'] ?? {}) as { effort?: string; summary?: string }
  const tier = request['service_tier']
  return {
    id,
    object: 'response',
    created_at: 1_700_000_000,
    status: 'in_progress',
    background: false,
    error: null,
    incomplete_details: null,
    instructions: request['instructions'] ?? null,
    max_output_tokens: request['max_output_tokens'] ?? null,
    model: answer.model ?? request['model'],
    output: [],
    parallel_tool_calls: request['parallel_tool_calls'] ?? true,
    previous_response_id: null,
    prompt_cache_key: request['prompt_cache_key'] ?? null,
    reasoning: {
      effort: openaiFacts(String(request['model'])).reasons ? effortOf(request) : null,
      summary: reasoning.summary ?? null,
    },
    service_tier: tier == null || tier === 'auto' ? 'default' : tier,
    store: request['store'] ?? true,
    temperature: request['temperature'] ?? 1,
    text: request['text'] ?? { format: { type: 'text' } },
    tool_choice: request['tool_choice'] ?? 'auto',
    tools: request['tools'] ?? [],
    top_p: request['top_p'] ?? 1,
    truncation: 'disabled',
    usage: null,
    metadata: request['metadata'] ?? {},
  }
}

function responsesUsage(usage: FakeUsage): object {
  const { input_tokens, output_tokens, cached_tokens = 0, cache_write_tokens, reasoning_tokens = 0 } = usage
  return {
    input_tokens,
    input_tokens_details: { cached_tokens, ...(cache_write_tokens !== undefined && { cache_write_tokens }) },
    output_tokens,
    output_tokens_details: { reasoning_tokens },
    total_tokens: input_tokens + output_tokens,
  }
}

function itemsOf(answer: FakeAnswer, request: Record<string, unknown>, memory: FakeMemory): Streamed[] {
  const { reasons } = openaiFacts(String(request['model']))
  return partsOf(answer).flatMap((part) => {
    if ('text' in part) return messageItem(part.text, memory)
    if ('tool_call' in part) return callItem(part.tool_call, memory)
    return reasons && effortOf(request) !== 'none' ? reasoningItem(part.reasoning, request, memory) : []
  })
}

function reasoningItem(given: FakeReasoning, request: Record<string, unknown>, memory: FakeMemory): Streamed {
  const id = memory.id('rs')
  const asked = (request['reasoning'] ?? {}) as { summary?: string | null }
  const include = (request['include'] ?? []) as string[]
  const summary = asked.summary == null ? [] : (given.summary ?? (given.text === undefined ? [] : [given.text]))
  const encrypted = include.includes('reasoning.encrypted_content')
    ? { encrypted_content: given.encrypted ?? secret(id) }
    : {}
  return {
    started: { id, type: 'reasoning', ...encrypted, summary: [] },
    events: summary.flatMap((text, summary_index) => [
      { type: 'response.reasoning_summary_part.added', summary_index, part: { type: 'summary_text', text: '' } },
      ...words(text).map((delta) => ({ type: 'response.reasoning_summary_text.delta', summary_index, delta })),
      { type: 'response.reasoning_summary_text.done', summary_index, text },
      { type: 'response.reasoning_summary_part.done', summary_index, part: { type: 'summary_text', text } },
    ]),
    done: { id, type: 'reasoning', ...encrypted, summary: summary.map((text) => ({ type: 'summary_text', text })) },
  }
}

function messageItem(text: string, memory: FakeMemory): Streamed {
  const id = memory.id('msg')
  const part = (text: string): object => ({ type: 'output_text', annotations: [], logprobs: [], text })
  const item = (status: string, content: object[]): Item => ({
    id,
    type: 'message',
    status,
    content,
    role: 'assistant',
  })
  return {
    started: item('in_progress', []),
    events: [
      { type: 'response.content_part.added', content_index: 0, part: part('') },
      ...words(text).map((delta) => ({ type: 'response.output_text.delta', content_index: 0, delta, logprobs: [] })),
      { type: 'response.output_text.done', content_index: 0, text, logprobs: [] },
      { type: 'response.content_part.done', content_index: 0, part: part(text) },
    ],
    done: item('completed', [part(text)]),
  }
}

function callItem(
  { id: call_id, name, arguments: given }: { id?: string; name: string; arguments: unknown },
  memory: FakeMemory,
): Streamed {
  const item = { id: memory.id('fc'), type: 'function_call', call_id: call_id ?? memory.id('call'), name }
  const written = asText(given)
  const half = Math.ceil(written.length / 2)
  const delta = (delta: string): Event => ({ type: 'response.function_call_arguments.delta', delta })
  return {
    started: { ...item, status: 'in_progress', arguments: '' },
    events: [
      delta(written.slice(0, half)),
      delta(written.slice(half)),
      { type: 'response.function_call_arguments.done', arguments: written },
    ],
    done: { ...item, status: 'completed', arguments: written },
  }
}

/** Keeps what a later request may bring back: what was reasoned, what followed it, and what stands behind it. */
function remember(items: Streamed[], request: Record<string, unknown>, memory: FakeMemory): void {
  let before: ProducedReasoning | undefined
  let last: ProducedReasoning | undefined
  for (const { done } of items) {
    const { id, type } = done
    const call_id = typeof done['call_id'] === 'string' ? done['call_id'] : undefined
    if (last) last.next = { type, id, ...(call_id !== undefined && { call_id }) }
    last = undefined
    memory.needs.set(id, before?.id)
    if (call_id !== undefined) memory.needs.set(call_id, before?.id)
    if (request['store'] !== false) memory.stored.set(id, type)
    if (type !== 'reasoning') continue
    const encrypted_content = done['encrypted_content'] as string | undefined
    const summary = (done['summary'] as { text: string }[]).map(({ text }) => text)
    before = last = { id, encrypted_content, summary }
    memory.needs.set(id, undefined)
    memory.reasoning.set(id, before)
    if (encrypted_content !== undefined) memory.encrypted.set(encrypted_content, before)
  }
}
