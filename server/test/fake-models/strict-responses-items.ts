import type { FakeMemory, ProducedReasoning, Refusal, StrictState } from './strict-memory.ts'
import { openaiFacts } from './strict-model-facts.ts'
import { refuse } from './strict-openai.ts'
import { firstFault } from './strict-shapes.ts'

/** An item of `input`, whose form has been looked at. */
export interface InputItem {
  type?: string
  role?: string
  id?: string | null
  call_id?: string
  encrypted_content?: string | null
  summary?: { text: string }[]
}

const input = { param: 'input' }

/** What Responses have against the items of a request: pairs that are torn, and reasoning that is not theirs. */
export function itemsRefusal(
  items: InputItem[],
  request: Record<string, unknown>,
  state: StrictState,
): Refusal | undefined {
  return firstFault([
    () => duplicateRefusal(items),
    () => callsRefusal(items),
    () => firstFault(items.map((item) => () => storedRefusal(item, request, state.memory))),
    () => reasoningRefusal(items, request, state.memory),
  ])
}

function duplicateRefusal(items: InputItem[]): Refusal | undefined {
  const ids = items.flatMap(({ id }) => id ?? [])
  const twice = ids.find((id, at) => ids.indexOf(id) !== at)
  if (twice === undefined) return undefined
  return refuse(`Duplicate item found with id ${twice}. Remove duplicate items from your input and try again.`, input)
}

/** Each result answers a call of the turn before it, and each call has its result before the next turn. */
function callsRefusal(items: InputItem[]): Refusal | undefined {
  const open = new Set<string>()
  let turn = new Set<string>()
  let hasResults = false
  for (const { type, role, call_id = '' } of items) {
    if (type === 'function_call_output') {
      hasResults = true
      if (!turn.has(call_id)) {
        return refuse(`No tool call found for function call output with call_id ${call_id}.`, input)
      }
      open.delete(call_id)
      continue
    }
    const isOfModel =
      type === 'function_call' || type === 'reasoning' || type === 'item_reference' || role === 'assistant'
    if (!isOfModel || hasResults) {
      const [missing] = open
      if (missing !== undefined) return refuse(`No tool output found for function call ${missing}.`, input)
      turn = new Set()
      hasResults = false
    }
    if (type === 'function_call') {
      open.add(call_id)
      turn.add(call_id)
    }
  }
  const [missing] = open
  return missing === undefined ? undefined : refuse(`No tool output found for function call ${missing}.`, input)
}

/** Items that stand for what the service has stored: nothing is, with `store: false`. */
function storedRefusal(item: InputItem, request: Record<string, unknown>, memory: FakeMemory): Refusal | undefined {
  const isReference =
    item.type === 'item_reference' || (item.type === 'reasoning' && item.id != null && item.encrypted_content == null)
  if (!isReference || memory.stored.get(item.id ?? '') !== undefined) return undefined
  const hint =
    request['store'] === false
      ? ' Items are not persisted when `store` is set to false. Try again with `store` set to true, or remove this item from your input.'
      : ''
  return refuse(`Item with id '${item.id}' not found.${hint}`, { ...input, status: 404 })
}

/** Reasoning comes back as it was, right before what followed it; what followed it does not come back without it. */
function reasoningRefusal(
  items: InputItem[],
  request: Record<string, unknown>,
  memory: FakeMemory,
): Refusal | undefined {
  const reasons = openaiFacts(String(request['model'])).reasons
  // The reasoning item that the items of this turn of the model stand behind.
  let before: ProducedReasoning | undefined
  for (const [at, item] of items.entries()) {
    const isReference = item.type === 'item_reference'
    if (item.type === 'reasoning' || (isReference && memory.reasoning.get(item.id ?? ''))) {
      if (!reasons) {
        return refuse(
          'Reasoning input items can only be provided to a reasoning or computer use model. Remove reasoning items from your input and try again.',
          input,
        )
      }
      const produced = isReference ? memory.reasoning.get(item.id ?? '') : producedAs(item, memory)
      if (!produced) return unverified(item, memory)
      if (!follows(items[at + 1], produced)) {
        return refuse(
          `Item '${produced.id}' of type 'reasoning' was provided without its required following item.`,
          input,
        )
      }
      before = produced
      continue
    }
    if (item.type !== 'function_call' && item.role !== 'assistant') {
      before = undefined
      continue
    }
    // The real service knows a call by its `id` alone. This one also knows it by its `call_id`, so that a client which
    // leaves out both the id and the reasoning does not pass for one that keeps what it was given.
    const needed = memory.needs.get(item.id ?? '') ?? memory.needs.get(item.call_id ?? '')
    if (reasons && needed !== undefined && before?.id !== needed) {
      const type = item.type ?? 'message'
      return refuse(
        `Item '${item.id ?? item.call_id}' of type '${type}' was provided without its required 'reasoning' item: '${needed}'.`,
        input,
      )
    }
  }
  return undefined
}

function producedAs(item: InputItem, memory: FakeMemory): ProducedReasoning | undefined {
  const produced =
    item.encrypted_content == null ? memory.reasoning.get(item.id ?? '') : memory.encrypted.get(item.encrypted_content)
  if (!produced || (item.id != null && item.id !== produced.id)) return undefined
  // The real service does not look at the summary; this one does, since a changed one means that it was cut or mixed up.
  const summary = (item.summary ?? []).map(({ text }) => text)
  return JSON.stringify(summary) === JSON.stringify(produced.summary) ? produced : undefined
}

function unverified(item: InputItem, memory: FakeMemory): Refusal {
  const content = item.encrypted_content ?? ''
  const what = item.id == null ? `${content.slice(0, 4)}...${content.slice(-4)}` : `for item ${item.id}`
  const isOthers = item.id != null && (memory.encrypted.get(content)?.id ?? item.id) !== item.id
  const reason = isOthers
    ? 'Encrypted content item_id did not match the target item id.'
    : 'Encrypted content could not be decrypted or parsed.'
  return refuse(`The encrypted content ${what} could not be verified. Reason: ${reason}`, {
    code: 'invalid_encrypted_content',
  })
}

/** Whether an item is what followed a reasoning item when both were produced. */
function follows(item: InputItem | undefined, { next }: ProducedReasoning): boolean {
  if (next === undefined) return true
  if (!item) return false
  if (item.type === 'item_reference') return item.id === next.id
  const isSameKind = next.type === 'message' ? item.role === 'assistant' : item.type === next.type
  return isSameKind && (item.id ?? next.id) === next.id && (item.call_id ?? next.call_id) === next.call_id
}
