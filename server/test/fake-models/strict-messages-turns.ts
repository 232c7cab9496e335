import type { FakeMemory, ProducedThinking, Refusal } from './strict-memory.ts'
import { claudeFacts, thinkingOf } from './strict-model-facts.ts'
import { firstFault } from './strict-shapes.ts'

/** A message whose form has been looked at. */
export interface ClaudeMessage {
  role: 'user' | 'assistant'
  content: string | ClaudeBlock[]
}

interface ClaudeBlock {
  type: string
  text?: string
  id?: string
  tool_use_id?: string
  thinking?: string
  signature?: string
  data?: string
  content?: string | ClaudeBlock[]
  is_error?: boolean
}

/** A turn: messages of the same role in a row count as one. */
interface Turn {
  role: 'user' | 'assistant'
  /** The place of its first message, which the complaints name. */
  at: number
  /** Its blocks, each with its way. */
  blocks: { block: ClaudeBlock; path: string }[]
}

/** A refusal in Anthropic's form. */
export function complain(message: string): Refusal {
  return { status: 400, type: 'invalid_request_error', message }
}

/** What Anthropic has against the conversation of a request: its order, its calls, and thinking that is not as it was. */
export function turnsRefusal(
  messages: ClaudeMessage[],
  request: Record<string, unknown>,
  memory: FakeMemory,
): Refusal | undefined {
  const turns = turnsOf(messages)
  return firstFault([
    () => (messages.length === 0 ? complain('messages: at least one message is required') : undefined),
    () =>
      messages[0]?.role === 'assistant' ? complain('messages: first message must use the "user" role') : undefined,
    () => contentRefusal(messages, request),
    () => callsRefusal(turns),
    () => lastRefusal(messages, request),
    () => thinkingRefusal(turns, request, memory),
  ])
}

function turnsOf(messages: ClaudeMessage[]): Turn[] {
  const turns: Turn[] = []
  for (const [at, { role, content }] of messages.entries()) {
    const blocks = (typeof content === 'string' ? [{ type: 'text', text: content }] : content).map((block, place) => ({
      block,
      path: `messages.${at}.content.${place}`,
    }))
    const last = turns.at(-1)
    if (last?.role === role) last.blocks.push(...blocks)
    else turns.push({ role, at, blocks })
  }
  return turns
}

function contentRefusal(messages: ClaudeMessage[], request: Record<string, unknown>): Refusal | undefined {
  const { system } = request as { system?: string | ClaudeBlock[] }
  if (Array.isArray(system) && system.some(({ text }) => text === '')) {
    return complain('system: text content blocks must be non-empty')
  }
  for (const [at, { role, content }] of messages.entries()) {
    const isLast = at === messages.length - 1 && role === 'assistant'
    if (content.length === 0 && !isLast) {
      return complain(
        `messages.${at}: all messages must have non-empty content except for the optional final assistant message`,
      )
    }
    for (const block of typeof content === 'string' ? [{ type: 'text', text: content }] : content) {
      if (block.is_error === true && (block.content?.length ?? 0) === 0) {
        return complain(`messages.${at}: content cannot be empty if \`is_error\` is true`)
      }
      if (block.type !== 'text') continue
      if (block.text === '' && !isLast) return complain('messages: text content blocks must be non-empty')
      if (block.text?.trim() === '' && !isLast) {
        return complain('messages: text content blocks must contain non-whitespace text')
      }
    }
  }
  return undefined
}

/** The results of a turn's calls come first in the turn right after it, one each. */
function callsRefusal(turns: Turn[]): Refusal | undefined {
  const ids = new Set<string>()
  for (const [at, turn] of turns.entries()) {
    const before = turns[at - 1]
    const asked = (before?.role === 'assistant' ? before.blocks : []).flatMap(({ block }) =>
      block.type === 'tool_use' ? (block.id ?? []) : [],
    )
    const answered = new Set<string>()
    for (const { block, path } of turn.blocks) {
      if (block.type === 'tool_use') {
        if (turn.role === 'user') return complain(`${path}: \`tool_use\` blocks can only be in \`assistant\` messages`)
        if (ids.has(block.id ?? '')) return complain(`${path}: \`tool_use\` ids must be unique`)
        ids.add(block.id ?? '')
      }
      if (block.type !== 'tool_result') continue
      const id = block.tool_use_id ?? ''
      if (turn.role === 'assistant') {
        return complain(`${path}: \`tool_result\` blocks can only be in \`user\` messages`)
      }
      if (!asked.includes(id)) {
        return complain(
          `${path}: unexpected \`tool_use_id\` found in \`tool_result\` blocks: ${id}. Each \`tool_result\` block must have a corresponding \`tool_use\` block in the previous message.`,
        )
      }
      if (answered.has(id)) {
        return complain(
          `${path}: each tool_use must have a single result. Found multiple \`tool_result\` blocks with id: ${id}`,
        )
      }
      answered.add(id)
    }
    const first = turn.blocks.findIndex(({ block }) => block.type !== 'tool_result')
    const leading = turn.blocks.slice(0, first === -1 ? undefined : first).map(({ block }) => block.tool_use_id)
    const missing = asked.filter((id) => !leading.includes(id))
    if (missing.length > 0) return unanswered(before?.at ?? at, missing)
  }
  const last = turns.at(-1)
  const open = (last?.role === 'assistant' ? last.blocks : []).flatMap(({ block }) =>
    block.type === 'tool_use' ? (block.id ?? []) : [],
  )
  return open.length > 0 ? unanswered(last?.at ?? 0, open) : undefined
}

function unanswered(at: number, ids: string[]): Refusal {
  return complain(
    `messages.${at}: \`tool_use\` ids were found without \`tool_result\` blocks immediately after: ${ids.join(', ')}. Each \`tool_use\` block must have a corresponding \`tool_result\` block in the next message.`,
  )
}

function lastRefusal(messages: ClaudeMessage[], request: Record<string, unknown>): Refusal | undefined {
  const last = messages.at(-1)
  if (last?.role !== 'assistant') return undefined
  if (!claudeFacts(String(request['model'])).prefill) {
    return complain(
      'This model does not support assistant message prefill. The conversation must end with a user message.',
    )
  }
  const text = typeof last.content === 'string' ? last.content : last.content.at(-1)?.text
  return text !== undefined && text !== text.trimEnd()
    ? complain('messages: final assistant content cannot end with trailing whitespace')
    : undefined
}

/** Blocks that were never produced are refused wherever they stand; those of the last turn must all be there as they were. */
function thinkingRefusal(turns: Turn[], request: Record<string, unknown>, memory: FakeMemory): Refusal | undefined {
  const last = turns.findLast(({ role }) => role === 'assistant')
  for (const { blocks } of turns) {
    for (const { block, path } of blocks) {
      if (!isThinking(block)) continue
      const produced = memory.thinking.get(keyOf(block))
      if (!produced) {
        const what = block.type === 'thinking' ? 'signature` in `thinking' : 'data` in `redacted_thinking'
        return complain(`${path}: Invalid \`${what}\` block`)
      }
      const isLatest = last?.blocks.some((one) => one.block === block) === true
      if (written(produced) !== written(block)) {
        return complain(isLatest ? `${path}: ${unmodified}` : `${path}: Invalid \`signature\` in \`thinking\` block`)
      }
    }
  }
  const mode = thinkingOf(request)
  if (mode === 'off' || !last) return undefined
  const call = last.blocks.find(({ block }) => block.type === 'tool_use')
  if (!call) return undefined
  const produced = memory.turns.get(call.block.id ?? '')
  const sent = last.blocks.filter(({ block }) => isThinking(block))
  const [first] = last.blocks
  // With a budget the model thinks before it calls, also for calls of another model; adaptive thinking may have skipped
  // it.
  const mustThink = produced === undefined ? mode === 'enabled' : produced.thinking.length > 0
  if (mustThink && first && !isThinking(first.block) && (produced === undefined || sent.length === 0)) {
    return complain(
      `${first.path}.type: Expected \`thinking\` or \`redacted_thinking\`, but found \`${first.block.type}\`. When \`thinking\` is enabled, a final \`assistant\` message must start with a thinking block (preceeding the lastmost set of \`tool_use\` and \`tool_result\` blocks). We recommend you include thinking blocks from previous turns. To avoid this requirement, disable \`thinking\`. Please consult our documentation at https://docs.claude.com/en/docs/build-with-claude/extended-thinking`,
    )
  }
  if (produced === undefined) return undefined
  const order = last.blocks.flatMap(({ block }) => {
    if (isThinking(block)) return keyOf(block)
    return block.type === 'tool_use' ? (block.id ?? []) : []
  })
  return order.join() === produced.order.join() ? undefined : complain(`${(sent[0] ?? first)?.path}: ${unmodified}`)
}

const unmodified =
  '`thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified. These blocks must remain as they were in the original response.'

function isThinking({ type }: ClaudeBlock): boolean {
  return type === 'thinking' || type === 'redacted_thinking'
}

/** What a block is remembered by. */
export function keyOf(block: ClaudeBlock | ProducedThinking): string {
  return (block.type === 'thinking' ? (block as ClaudeBlock).signature : (block as ClaudeBlock).data) ?? ''
}

function written(block: ClaudeBlock | ProducedThinking): string {
  const { type, thinking, signature, data } = block as ClaudeBlock
  return JSON.stringify([type, thinking, signature, data])
}
