import { notFound, Problem } from '#contract/core/problems.ts'
import { projectId } from '#contract/core/project-id.ts'
import type { Role } from '#contract/core/scopes.ts'
import type { FilterCondition, TriggerAction, triggerStates, TriggerSource } from '#contract/doors/trigger-sources.ts'
import type { NewTask } from '../../engine/commands/new-task.ts'
import { answerConstraints, type ConstraintAnswers } from '../../platform/postgres/constraints.ts'
import { jsonb, type Sql } from '../../platform/postgres/database.ts'
import { isId } from '../../platform/ids.ts'
import type { HmacSettings } from './verify.ts'

/** The row of a trigger, without its secrets. */
export interface TriggerRow {
  id: string
  project_id: number
  agent_id: string
  name: string
  source: TriggerSource
  hmac: HmacSettings | null
  filter: FilterCondition[]
  input: string | Record<string, unknown> | null
  thread_key: string | null
  action: TriggerAction
  dedupe: string | null
  priority: number
  timeout_seconds: number | null
  budget: Record<string, unknown>
  metadata: Record<string, unknown>
  status: (typeof triggerStates)[number]
  accepted: number
  filtered: number
  duplicates: number
  refused: number
  last_delivery_at: string | null
  last_task_id: string | null
  last_refused_at: string | null
  last_error: { code: string; message: string; at: string } | null
  previous_secret_expires_at: string | null
  previous_url_expires_at: string | null
  created_by: string
  created_at: string
  updated_at: string
}

/** The members of a trigger that users set. */
export type TriggerContent = Pick<
  TriggerRow,
  | 'name'
  | 'hmac'
  | 'filter'
  | 'input'
  | 'thread_key'
  | 'action'
  | 'dedupe'
  | 'priority'
  | 'timeout_seconds'
  | 'budget'
  | 'metadata'
>

/** Key of a trigger within its project. */
export interface TriggerKey {
  id: string
  project_id: number
}

const columns = (sql: Sql) => sql.fragment`
  t.id, t.project_id, t.agent_id, t.name, t.source, t.hmac, t.filter, t.input, t.thread_key, t.action, t.dedupe, t.priority,
  t.timeout_seconds, t.budget, t.metadata, t.status, t.accepted, t.filtered, t.duplicates, t.refused, t.last_delivery_at, t.last_task_id,
  t.last_refused_at, t.last_error,
  case when t.previous_secret_until > now() then t.previous_secret_until end as previous_secret_expires_at,
  case when t.previous_address_until > now() then t.previous_address_until end as previous_url_expires_at,
  t.created_by, t.created_at, t.updated_at`

/** A trigger in a response. */
export function triggerView(row: TriggerRow) {
  return { ...row, project_id: projectId(row.project_id) }
}

/**
 * A trigger of a project; throws 404 if it does not exist. With `lock` its row is locked until the transaction ends.
 */
export async function requireTrigger(sql: Sql, key: TriggerKey, { lock = false } = {}): Promise<TriggerRow> {
  const [row] = isId('trig', key.id)
    ? await sql.run<TriggerRow>(sql.fragment`
        select ${columns(sql)} from trigger t where t.id = ${key.id} and t.project_id = ${key.project_id}
        ${lock ? sql.fragment`for no key update` : sql.fragment``}`)
    : []
  if (!row) throw triggerNotFound(key.id.slice(0, 100))
  return row
}

export function triggerNotFound(id: string): Problem {
  return notFound('trigger_not_found', 'trigger', id)
}

/** A page of a project's triggers, newest first, and their total number. */
export async function listTriggers(
  sql: Sql,
  filter: {
    project_id: number
    agent_id?: string | undefined
    status?: TriggerRow['status'] | undefined
    limit: number
    offset: number
  },
): Promise<{ triggers: TriggerRow[]; total: number }> {
  const { fragment } = sql
  const conditions = [fragment`t.project_id = ${filter.project_id}`]
  if (filter.agent_id !== undefined) conditions.push(fragment`t.agent_id = ${filter.agent_id}`)
  if (filter.status) conditions.push(fragment`t.status = ${filter.status}`)
  const where = conditions.reduce((all, one) => fragment`${all} and ${one}`)
  const [count] = await sql.run<{ total: number }>(fragment`select count(*) as total from trigger t where ${where}`)
  const triggers = await sql.run<TriggerRow>(fragment`
    select ${columns(sql)} from trigger t where ${where} order by t.id desc limit ${filter.limit} offset ${filter.offset}`)
  return { triggers, total: count?.total ?? 0 }
}

/** Stored secrets of a trigger: the hash of its address and its encrypted secret. */
export interface StoredProof {
  address_hash: Buffer
  secret: Buffer
}

/** Inserts an active trigger. Throws `resource_conflict` if the project has too many. */
export async function insertTrigger(
  sql: Sql,
  trigger: TriggerContent & TriggerKey & Pick<TriggerRow, 'agent_id' | 'source' | 'created_by'> & StoredProof,
  triggersMax: number,
): Promise<TriggerRow> {
  const { id, project_id, agent_id, name, source, hmac, filter, input, thread_key, action, dedupe } = trigger
  const { priority, timeout_seconds, budget, metadata, address_hash, secret, created_by } = trigger
  const statement = sql.fragment`
    insert into trigger as t (id, project_id, agent_id, name, source, hmac, filter, input, thread_key, action, dedupe, priority,
      timeout_seconds, budget, metadata, address_hash, secret, created_by)
    select ${id}, ${project_id}::bigint, ${agent_id}, ${name}, ${source}, ${nullable(hmac)}::jsonb, ${jsonb(filter)}::jsonb,
      ${nullable(input)}::jsonb, ${thread_key}, ${action}, ${dedupe}, ${priority}::int, ${timeout_seconds}::int, ${jsonb(budget)}::jsonb,
      ${jsonb(metadata)}::jsonb, ${address_hash}::bytea, ${secret}::bytea, ${created_by}
    where (select count(*) from trigger where project_id = ${project_id}) < ${triggersMax}
    returning ${columns(sql)}`
  // The project or agent was deleted since it was looked up.
  const missingParents: ConstraintAnswers = {
    trigger_agent_id_fkey: () => notFound('agent_not_found', 'agent', agent_id),
  }
  const [row] = await answerConstraints(missingParents, () => sql.run<TriggerRow>(statement))
  if (row) return row
  throw new Problem(
    'resource_conflict',
    { resource_type: 'project', resource_id: projectId(project_id) },
    { message: `A project may have at most ${triggersMax} triggers.` },
  )
}

/** Replaces the content of a locked trigger. */
export async function updateTrigger(tx: Sql, { id }: TriggerKey, content: TriggerContent): Promise<void> {
  const { name, hmac, filter, input, thread_key, action, dedupe, priority, timeout_seconds, budget, metadata } = content
  await tx`
    update trigger set name = ${name}, hmac = ${nullable(hmac)}, filter = ${jsonb(filter)}, input = ${nullable(input)},
      thread_key = ${thread_key}, action = ${action}, dedupe = ${dedupe}, priority = ${priority}, timeout_seconds = ${timeout_seconds},
      budget = ${jsonb(budget)}, metadata = ${jsonb(metadata)}, updated_at = greatest(now(), updated_at + interval '1 millisecond')
    where id = ${id}`
}

/** Replaces the secret of a locked trigger; the previous one stays valid for a while. */
export async function replaceSecret(
  tx: Sql,
  { id }: TriggerKey,
  secret: Buffer,
  overlap_seconds: number,
): Promise<void> {
  await tx`
    update trigger set secret = ${secret}, previous_secret = secret,
      previous_secret_until = now() + make_interval(secs => ${overlap_seconds}),
      updated_at = greatest(now(), updated_at + interval '1 millisecond')
    where id = ${id}`
}

/** Replaces the address of a locked trigger; the previous one stays valid for a while. */
export async function replaceAddress(
  tx: Sql,
  { id }: TriggerKey,
  address_hash: Buffer,
  overlap_seconds: number,
): Promise<void> {
  await tx`
    update trigger set address_hash = ${address_hash}, previous_address_hash = address_hash,
      previous_address_until = now() + make_interval(secs => ${overlap_seconds}),
      updated_at = greatest(now(), updated_at + interval '1 millisecond')
    where id = ${id}`
}

/** Sets the state of a locked trigger. */
export async function moveTrigger(tx: Sql, { id }: TriggerKey, status: TriggerRow['status']): Promise<void> {
  await tx`
    update trigger set status = ${status}, updated_at = greatest(now(), updated_at + interval '1 millisecond') where id = ${id}`
}

export async function deleteTrigger(sql: Sql, { id }: TriggerKey): Promise<boolean> {
  return (await sql`delete from trigger where id = ${id} returning id`).length > 0
}

/** A trigger that was found by its address. */
export interface FoundTrigger extends TriggerRow {
  org_id: string
  /** Current role of its owner in the organization; null if the owner is no longer a member. */
  role: Role | null
  secret: Buffer
  /** The previous secret; null if it is no longer valid. */
  previous_secret: Buffer | null
}

/** The trigger of a valid address, by the hash of its secret part. */
export async function findByAddress(sql: Sql, hash: Buffer): Promise<FoundTrigger | undefined> {
  const [row] = await sql.run<FoundTrigger>(sql.fragment`
    select ${columns(sql)}, p.org_id, m.role, t.secret,
      case when t.previous_secret_until > now() then t.previous_secret end as previous_secret
    from trigger t join project p on p.id = t.project_id
    left join member m on m.org_id = p.org_id and m.user_id = t.created_by
    where t.id = (select id from trigger where address_hash = ${hash}
      union all select id from trigger where previous_address_hash = ${hash} and previous_address_until > now() limit 1)`)
  return row
}

/**
 * Locks the agent of a trigger, so that it cannot change its state or be deleted until the transaction ends, and
 * returns what creating a task needs.
 */
export async function lockAgent(
  tx: Sql,
  agent_id: string,
): Promise<(NewTask['agent'] & { config: Record<string, unknown> }) | undefined> {
  const [row] = await tx<NewTask['agent'] & { config: Record<string, unknown> }>`
    select id, project_id, version, status, settles_to,
      jsonb_strip_nulls(jsonb_build_object('max_concurrent_tasks', config->'max_concurrent_tasks', 'input_schema', config->'input_schema'))
        as config
    from agent where id = ${agent_id} for key share`
  return row
}

/** Configuration and organization of a trigger's agent. */
export async function findAgentOf(
  sql: Sql,
  { agent_id }: Pick<TriggerRow, 'agent_id'>,
): Promise<{ config: Record<string, unknown>; org_id: string } | undefined> {
  const [row] = await sql<{ config: Record<string, unknown>; org_id: string }>`
    select jsonb_strip_nulls(jsonb_build_object('input_schema', a.config->'input_schema')) as config, p.org_id
    from agent a join project p on p.id = a.project_id where a.id = ${agent_id}`
  return row
}

/** Prevents the deletion of a trigger until the transaction ends. Returns false if it was deleted. */
export async function holdTrigger(tx: Sql, id: string): Promise<boolean> {
  return (await tx`select 1 from trigger where id = ${id} for key share`).length > 0
}

/** Counts the result of a delivery on its trigger. */
export async function noteDelivery(
  tx: Sql,
  id: string,
  { status, task_id }: { status: 'accepted' | 'filtered' | 'duplicate'; task_id: string | null },
): Promise<void> {
  await tx`
    update trigger set last_delivery_at = now(), accepted = accepted + (${status}::text = 'accepted')::int,
      filtered = filtered + (${status}::text = 'filtered')::int, duplicates = duplicates + (${status}::text = 'duplicate')::int,
      last_task_id = coalesce(${task_id}, last_task_id), last_error = null
    where id = ${id}`
}

/** Stores why an authenticated delivery could not be accepted. */
export async function noteError(sql: Sql, id: string, { code, message }: { code: string; message: string }) {
  await sql`
    update trigger set last_error = jsonb_build_object('code', ${code}::text, 'message', ${message}::text,
      'at', to_char(now() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'))
    where id = ${id}`
}

/** Minimum interval between audit log entries about refused requests. */
const recordEvery_hours = 1

/** Counts a request that failed authentication. Returns whether to write an audit log entry: once an hour. */
export async function noteRefusal(tx: Sql, id: string): Promise<boolean> {
  const [row] = await tx<{ is_due: boolean }>`
    update trigger t set refused = t.refused + 1, last_refused_at = now(),
      refusal_recorded_at = case when b.is_due then now() else t.refusal_recorded_at end
    from (
      select id, coalesce(refusal_recorded_at < now() - make_interval(hours => ${recordEvery_hours}), true) as is_due
      from trigger where id = ${id} for no key update
    ) b
    where t.id = b.id returning b.is_due`
  return row?.is_due ?? false
}

function nullable(value: unknown): string | null {
  return value === null ? null : jsonb(value)
}
