import { isId, madeAt } from '../../platform/ids.ts'
import type { Sql } from '../../platform/postgres/database.ts'
import type { AskedAgent } from '../../resources/tasks/asked-agents.ts'
import { findCallersCall, findGiven, findOwnCall, findWritten } from './item-references.queries.ts'
import { badParameter } from './problems.ts'
import { isReference } from './read-input.ts'
import { nameOf } from './response-state.ts'

type Item = Record<string, unknown>

/**
 * Replaces item references of an input by the items of this agent's responses. Items that only repeat a question of
 * the journal, and reasoning, are dropped. Throws 400 `item_not_found` for an unknown id.
 */
export async function withReferences(
  sql: Sql,
  agent: Pick<AskedAgent, 'id' | 'project_id'>,
  input: unknown,
): Promise<unknown> {
  if (!Array.isArray(input) || !input.some(isReference)) return input
  const items: unknown[] = []
  for (const [i, item] of input.entries()) {
    if (!isReference(item)) {
      items.push(item)
      continue
    }
    const { id } = item
    // Reasoning items are not stored; clients send their ids anyway.
    if (/^(rs|mcpr|mcpl)_/.test(id)) continue
    const found = await findItem(sql, agent, id)
    if (!found) {
      const param = `input[${i}].id`
      throw badParameter(param, `No stored response of this agent has an item ${id.slice(0, 100)}.`, 'item_not_found')
    }
    items.push(found)
  }
  return items
}

async function findItem(sql: Sql, agent: Pick<AskedAgent, 'id' | 'project_id'>, id: string): Promise<Item | undefined> {
  const [kind = '', rest = ''] = id.split('_', 2)
  if (kind === 'fc' && isId('call', `call_${rest}`)) {
    const call = await findCallersCall(sql, agent, `call_${rest}`)
    return call && { id, type: 'function_call', call_id: call.id, name: call.name, arguments: textOf(call.arguments) }
  }
  if (kind === 'mcp' && isId('step', `step_${rest}`)) {
    const call = await findOwnCall(sql, agent, `step_${rest}`, madeAt(`step_${rest}`))
    if (!call) return undefined
    const { label, name } = nameOf(call.name)
    const { output, error } = call
    const said = { output: error ? null : output, error: error ? error.message || error.code : null }
    return { id, type: 'mcp_call', server_label: label, name, arguments: textOf(call.arguments), ...said }
  }
  if (!isId('msg', id)) return undefined
  const text = await findWritten(sql, agent, id, madeAt(id))
  if (text === undefined) return findGiven(sql, agent, id, madeAt(id))
  const content = [{ type: 'output_text', text, annotations: [], logprobs: [] }]
  return { id, type: 'message', role: 'assistant', status: 'completed', content }
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value ?? {})
}
