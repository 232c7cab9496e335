import { isObject } from '#contract/core/merge-patch.ts'
import type { ModelCallOutput } from '../conversation/conversation.ts'
import type { StoredMessage } from '../conversation/turns.ts'
import type { ModelMessage } from '../models/model.ts'
import { canonicalJson } from '../tools/call-hash.ts'
import type { Step } from '../task.ts'

/**
 * The messages of a worker's request, with the whole turns of the journal for answers that the gateway gave. A worker
 * gets and repeats only their text and calls, and the provider needs its reasoning too.
 */
export function withOwnTurns(messages: readonly ModelMessage[], steps: readonly Step[]): StoredMessage[] {
  const turns = new Map<string, string[]>()
  for (const { type, status, output, turn } of steps) {
    if (type !== 'model_call' || status !== 'completed' || !turn || !isObject(output)) continue
    const { text, tool_calls } = output as unknown as ModelCallOutput
    const key = keyOf(text, tool_calls)
    turns.set(key, [...(turns.get(key) ?? []), turn])
  }
  if (turns.size === 0) return [...messages]
  // From the end, because workers leave out the oldest messages.
  return messages.toReversed().map(withTurn).toReversed()

  function withTurn(message: ModelMessage): StoredMessage {
    if (message.role !== 'assistant') return message
    const encrypted_turn = turns.get(keyOf(message.content, message.tool_calls))?.pop()
    return encrypted_turn === undefined ? message : { ...message, encrypted_turn }
  }
}

function keyOf(text: string, calls: ModelCallOutput['tool_calls'] = []): string {
  return canonicalJson([text, calls.map(({ id, name, arguments: given }) => [id, name, given])])
}
