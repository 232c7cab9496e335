import { notFound } from '#contract/core/problems.ts'
import type { Principal } from '../http/access/principal.ts'
import { jsonb, type Sql } from '../platform/postgres/database.ts'
import { isId } from '../platform/ids.ts'

/** Maximum number of conversations that one statement removes. */
const sweptAtOnce = 1000

/** A conversation of the OpenAI protocol. Its first response assigns its agent and thread. */
export interface ConversationRow {
  id: string
  thread_id: string | null
  agent_id: string | null
  /** Items that no response has read yet, in the form of the protocol. */
  items: Record<string, unknown>[]
  metadata: Record<string, string>
  created_at: string
}

/**
 * A conversation of the caller's organization; throws 404 if it does not exist. With `lock` its row is locked until
 * the transaction ends, so that of two concurrent first responses only one creates the thread.
 */
export async function requireConversation(
  sql: Sql,
  id: string,
  { org_id }: Pick<Principal, 'org_id'>,
  { lock = false } = {},
): Promise<ConversationRow> {
  const { fragment } = sql
  const rows = isId('conv', id)
    ? await sql.run<ConversationRow>(fragment`
        select c.id, c.thread_id, (select h.agent_id from thread h where h.id = c.thread_id) as agent_id, c.items, c.metadata,
          c.created_at
        from door_conversation c where c.id = ${id} and c.org_id = ${org_id} and c.deleted_at is null
        ${lock ? fragment`for update of c` : fragment``}`)
    : []
  if (!rows[0]) throw notFound('conversation_not_found', 'conversation', id.slice(0, 100))
  return rows[0]
}

export async function insertConversation(
  sql: Sql,
  conversation: { id: string; org_id: string; items: unknown[]; metadata: object; created_by: string },
): Promise<void> {
  const { id, org_id, items, metadata, created_by } = conversation
  await sql`
    insert into door_conversation (id, org_id, items, metadata, created_by)
    values (${id}, ${org_id}, ${jsonb(items)}, ${jsonb(metadata)}, ${created_by})`
}

/** Adds items for the next response. The caller has locked the row. */
export async function addConversationItems(tx: Sql, id: string, items: unknown[]): Promise<void> {
  await tx`update door_conversation set items = items || ${jsonb(items)}::jsonb where id = ${id}`
}

/** Removes an item that no response has read yet. Returns whether it existed. */
export async function deleteConversationItem(sql: Sql, id: string, item_id: string): Promise<boolean> {
  const deleted = await sql`
    update door_conversation set items = (
      select coalesce(jsonb_agg(i.item order by i.at), '[]') from jsonb_array_elements(items) with ordinality i (item, at)
      where i.item->>'id' is distinct from ${item_id})
    where id = ${id} and items @> ${jsonb([{ id: item_id }])}::jsonb
    returning id`
  return deleted.length > 0
}

export async function setConversationMetadata(sql: Sql, id: string, metadata: object): Promise<void> {
  await sql`update door_conversation set metadata = ${jsonb(metadata)} where id = ${id}`
}

export async function hideConversation(sql: Sql, id: string): Promise<void> {
  await sql`update door_conversation set deleted_at = now() where id = ${id}`
}

/**
 * Assigns a thread to a locked conversation. Returns and clears the items that the next task reads before its input.
 */
export async function takeConversationItems(
  tx: Sql,
  { id, items }: ConversationRow,
  thread_id: string,
): Promise<Record<string, unknown>[]> {
  await tx`update door_conversation set thread_id = ${thread_id}, items = '[]' where id = ${id}`
  return items
}

/** The responses of a conversation that are not deleted, oldest first. */
export async function listConversationResponses(sql: Sql, id: string): Promise<{ id: string }[]> {
  return sql<{ id: string }>`
    select id from door_response where conversation = ${id} and deleted_at is null order by created_at, id limit 1000`
}

/**
 * Removes a batch of conversations that were created more than `days` days ago and have no thread, because it was
 * removed with its last task or never created. With 0 days nothing is removed. Returns the number of removed
 * conversations.
 */
export async function sweepConversations(sql: Sql, days: number): Promise<number> {
  if (days === 0) return 0
  const removed = await sql`
    delete from door_conversation where thread_id is null and id in (
      select id from door_conversation
      where id < id_floor('conv', now() - make_interval(days => ${days})) and thread_id is null order by id limit ${sweptAtOnce})
    returning id`
  return removed.length
}
