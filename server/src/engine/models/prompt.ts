import { isObject } from '#contract/merge-patch.ts'
import type { ModelMessage, ModelRequest, ModelToolCall } from './model.ts'
import type { LanguageModel } from './providers.ts'
import type { WireNames } from './wire-names.ts'

type CallOptions = Parameters<LanguageModel['doStream']>[0]
type PromptMessage = CallOptions['prompt'][number]

/**
 * A request in the form that the provider libraries take. All system messages come first, as one: not every provider
 * takes them in the middle. An assistant's turn with neither text nor calls is left out, as providers refuse it.
 */
export function toCallOptions(request: ModelRequest, names: WireNames, signal: AbortSignal): CallOptions {
  const system = [
    request.system_prompt,
    ...request.messages.filter(({ role }) => role === 'system').map(({ content }) => content),
  ]
    .filter((text) => text !== undefined && text !== '')
    .join('\n\n')
  return {
    prompt: [
      ...(system === '' ? [] : [{ role: 'system' as const, content: system }]),
      ...request.messages.flatMap((message) => toPromptMessage(message, names)),
    ],
    ...(request.tools.length > 0 && {
      tools: request.tools.map(({ name, description, parameters }) => ({
        type: 'function' as const,
        name: names.toWire(name),
        description,
        inputSchema: parameters,
      })),
    }),
    ...(request.temperature !== undefined && { temperature: request.temperature }),
    ...(request.max_tokens !== undefined && { maxOutputTokens: request.max_tokens }),
    abortSignal: signal,
  }
}

function toPromptMessage(message: ModelMessage, names: WireNames): PromptMessage[] {
  const { role, content } = message
  if (role === 'system') return []
  if (role === 'user') return [{ role, content: [{ type: 'text', text: content }] }]
  if (role === 'tool') return [{ role, content: [toolResult(message, names)] }]
  const calls = (message.tool_calls ?? []).map((call) => ({
    type: 'tool-call' as const,
    toolCallId: call.id,
    toolName: names.toWire(call.name),
    input: callInput(call),
  }))
  const text = content === '' ? [] : [{ type: 'text' as const, text: content }]
  return text.length + calls.length === 0 ? [] : [{ role, content: [...text, ...calls] }]
}

function toolResult({ content, tool_call_id, tool_name }: ModelMessage, names: WireNames) {
  return {
    type: 'tool-result' as const,
    toolCallId: tool_call_id ?? '',
    toolName: names.toWire(tool_name ?? ''),
    output: { type: 'text' as const, value: content },
  }
}

/** Providers want an object; what the model once wrote instead is shown to it inside of one. */
function callInput({ arguments: given }: ModelToolCall): Record<string, unknown> {
  return isObject(given) ? given : { invalid_arguments: given }
}
