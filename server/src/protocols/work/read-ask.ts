import { isObject } from '#contract/core/merge-patch.ts'
import { efforts } from '#contract/models/call-settings.ts'
import { conversation } from '../../engine/conversation/conversation.ts'
import type { ModelAsk } from '../../engine/models/model.ts'
import type { InputMessage } from '#contract/tasks/tasks.ts'
import { withFiles } from '../../engine/files/input-files.ts'
import type { AskedFiles } from '../door-files.ts'
import { badParameter } from '../openai/problems.ts'
import { readChatMessages, readInput } from '../openai/read-input.ts'
import { readOptions } from '../openai/read-options.ts'

/** A validated request to the gateway. */
export interface ReadAsk {
  /** The request for the engine, with received files by URL replaced by their ids. */
  ask(received: ReadonlyMap<string, { id: string }>): ModelAsk
  max_tokens: number | undefined
  files: AskedFiles
}

/** Validates a request to the gateway. Throws 400 with `param`. */
export function readAsk(body: Record<string, unknown>, dialect: 'chat' | 'responses'): ReadAsk {
  if (dialect === 'responses' && body['previous_response_id'])
    throw badParameter(
      'previous_response_id',
      'The gateway does not store responses. Send the whole conversation as input.',
      'unsupported_parameter',
    )
  const { messages, urls, named } = dialect === 'chat' ? readChatMessages(body['messages']) : readInput(body['input'])
  const { caller, output_schema } = readOptions(body, {
    doors: { openai: { overrides: ['temperature', 'reasoning'] } },
  })
  const system: InputMessage[] = caller.instructions ? [{ role: 'system', content: caller.instructions }] : []
  const all = [...system, ...messages]
  if (all.length === 0) throw badParameter('input', 'input must have at least one item.')
  return {
    files: { urls, named },
    ask: (received) => ({
      system_prompt: undefined,
      messages: conversation({ input: withFiles(all, received), steps: [] }),
      tools: (caller.tools ?? []).map(({ name, description, parameters }) => ({ name, description, parameters })),
      tool_choice: caller.tool_choice,
      parallel_tool_calls: caller.parallel_tool_calls,
      temperature: caller.temperature,
      effort: caller.effort ?? effortOf(body),
      output_schema,
    }),
    max_tokens: caller.max_output_tokens,
  }
}

function effortOf({ reasoning_effort }: Record<string, unknown>) {
  return efforts.find((one) => one === reasoning_effort)
}

/** The parts of a request that identify the call: without members that only affect the form of the response. */
export function digested(path: string, body: Record<string, unknown>): object {
  const { stream: _, stream_options: __, ...asked } = body
  return { path, ...(isObject(asked) ? asked : {}) }
}
