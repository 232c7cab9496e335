import { createHash } from 'node:crypto'
import type { Sql } from '../platform/postgres/database.ts'

/** Protocols whose clients choose the identifiers of messages or runs, and of threads. */
export type NamingDoor = 'a2a' | 'agui'

/** An identifier of a client, and the segment that it belongs to. */
export interface DoorKey {
  hash: Buffer
  response_id: string
  task_id: string
}

export interface NewDoorKey extends DoorKey {
  door: NamingDoor
  credential_id: string
  key: string
}

/** Hash that detects whether a repeated identifier has the same content. */
export function hashOfSent(sent: unknown): Buffer {
  return createHash('sha256').update(JSON.stringify(sent)).digest()
}

/**
 * Claims an identifier for a segment that this transaction creates. Returns undefined if it was free, otherwise its
 * entry. Of two concurrent claims, the second waits for the first.
 */
export async function takeDoorKey(tx: Sql, taken: NewDoorKey): Promise<DoorKey | undefined> {
  const { door, credential_id, key, hash, response_id, task_id } = taken
  const made = await tx`
    insert into door_key (door, credential_id, key, hash, response_id, task_id)
    values (${door}, ${credential_id}, ${key}, ${hash}, ${response_id}, ${task_id}) on conflict do nothing returning 1 as made`
  return made.length > 0 ? undefined : findDoorKey(tx, { door, credential_id, key })
}

export async function findDoorKey(
  sql: Sql,
  { door, credential_id, key }: Pick<NewDoorKey, 'door' | 'credential_id' | 'key'>,
): Promise<DoorKey | undefined> {
  const [row] = await sql<DoorKey>`
    select hash, response_id, task_id from door_key
    where door = ${door} and credential_id = ${credential_id} and key = ${key}`
  return row
}

/** A thread that a client knows by its own identifier. */
export interface DoorThread {
  thread_id: string
  agent_id: string
}

/** Threads with this identifier, of all agents of the owner. */
export async function findDoorThreads(sql: Sql, door: NamingDoor, owner: string, key: string): Promise<DoorThread[]> {
  return sql<DoorThread>`
    select thread_id, agent_id from door_thread where door = ${door} and owner = ${owner} and key = ${key} limit 10`
}

/**
 * Assigns an identifier of a client to a thread unless it is assigned already. Returns the thread that it is assigned
 * to.
 */
export async function nameDoorThread(
  tx: Sql,
  named: { door: NamingDoor; owner: string; key: string } & DoorThread,
): Promise<string> {
  const { door, owner, key, agent_id, thread_id } = named
  const [row] = await tx<{ thread_id: string }>`
    insert into door_thread (door, owner, key, agent_id, thread_id) values (${door}, ${owner}, ${key}, ${agent_id}, ${thread_id})
    on conflict (owner, door, agent_id, key) do update set key = excluded.key returning thread_id`
  return row!.thread_id
}

/** Creates a thread of an agent that appears in lists; returns its id. */
export async function insertDoorThread(
  tx: Sql,
  thread: { id: string; project_id: number; agent_id: string; created_by: string; hidden?: boolean },
): Promise<void> {
  const { id, project_id, agent_id, created_by, hidden = false } = thread
  await tx`
    insert into thread (id, project_id, agent_id, metadata, created_by, hidden)
    values (${id}, ${project_id}, ${agent_id}, '{}', ${created_by}, ${hidden})`
}

/** Deletes a thread without tasks. */
export async function deleteDoorThread(tx: Sql, id: string): Promise<void> {
  await tx`delete from thread where id = ${id}`
}

/** The agent of a thread; undefined if the organization has no such thread. */
export async function findThreadAgent(sql: Sql, id: string, org_id: string): Promise<string | undefined> {
  const [row] = await sql<{ agent_id: string }>`
    select h.agent_id from thread h join project p on p.id = h.project_id and p.org_id = ${org_id} where h.id = ${id}`
  return row?.agent_id
}

/** An agent with the parts of its configuration that protocols use. With an organization, only an agent of it. */
export interface DoorAgent {
  id: string
  project_id: number
  name: string
  config: Record<string, unknown>
  description: string
  metadata: Record<string, unknown>
  version: number
  updated_at: string
}

export async function findDoorAgent(sql: Sql, id: string, org_id: string | null): Promise<DoorAgent | undefined> {
  const [row] = await sql<DoorAgent>`
    select a.id, a.project_id, a.name, a.config, a.description, a.metadata, a.version, a.updated_at
    from agent a join project p on p.id = a.project_id
    where a.id = ${id} and (${org_id}::text is null or p.org_id = ${org_id})`
  return row
}
