import { eventNames, type EventName } from '#contract/events.ts'
import { jsonb, type Sql } from '../platform/database.ts'
import { newId } from '../platform/ids.ts'

/** Whose event it is: an organization's, and where it has one its project's and agent's. */
export interface EventScope {
  org_id: string
  project_id?: number | undefined
  agent_id?: string | undefined
}

/**
 * Writes an event into the outbox, in the transaction that makes it true: either both are there after a crash, or
 * neither (decision D93). `data` is what subscribers will read; it holds no secret.
 */
export async function emit(tx: Sql, type: EventName, scope: EventScope, data: Record<string, unknown>): Promise<void> {
  if (!eventNames.includes(type)) throw new Error(`no such event: ${type}`)
  await tx`
    insert into event (id, org_id, project_id, agent_id, type, data)
    values (${newId('evt')}, ${scope.org_id}, ${scope.project_id ?? null}, ${scope.agent_id ?? null}, ${type}, ${jsonb(data)})`
}

/** An event to be written together with others. */
export interface NewEvent {
  type: EventName
  scope: EventScope
  data: Record<string, unknown>
}

/** Writes several events into the outbox in one statement; otherwise as `emit`. */
export async function emitAll(tx: Sql, events: readonly NewEvent[]): Promise<void> {
  if (events.length === 0) return
  const rows = events.map(({ type, scope, data }) => ({ id: newId('evt'), ...scope, type, data }))
  await tx`
    insert into event (id, org_id, project_id, agent_id, type, data)
    select id, org_id, project_id, agent_id, type, data
    from jsonb_to_recordset(${jsonb(rows)}::jsonb) as e(id text, org_id text, project_id bigint, agent_id text, type text, data jsonb)`
}
