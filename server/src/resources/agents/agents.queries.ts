import { agentActions, type AgentAction, type AgentState } from '#contract/agent-lifecycle.ts'
import { notFound, Problem } from '#contract/problems.ts'
import { answerConstraints, type ConstraintAnswers } from '../../platform/constraints.ts'
import { jsonb, type Sql } from '../../platform/database.ts'
import { isId, newId } from '../../platform/ids.ts'
import type { Principal } from '../../http/principal.ts'
import { projectNumber, requireProject } from '../projects/projects.queries.ts'
import { agentStats, type AgentStats } from '../tasks/stats.queries.ts'

/** An agent as it is kept. `config` is without environment variables; those are encrypted in `environment`. */
export interface AgentRow {
  id: string
  project_id: number
  name: string
  description: string
  status: AgentState
  /** Where `creating` and `updating` lead; null in every other state. */
  settles_to: 'running' | 'paused' | 'stopped' | null
  launch_trigger: 'create' | 'launch' | null
  revision: number
  version: number
  config: Record<string, unknown>
  environment: Buffer | null
  metadata: Record<string, unknown>
  created_by: string
  created_at: string
  updated_at: string
  last_activity: string | null
}

const columns = (sql: Sql) => sql.fragment`
  id, project_id, name, description, status, settles_to, launch_trigger, revision, version, config, environment, metadata,
  created_by, created_at, updated_at, last_activity`

/** What a new agent, or a new version of one, consists of. */
export interface AgentContent {
  name: string
  description: string
  config: Record<string, unknown>
  environment: Buffer | null
  metadata: Record<string, unknown>
}

/** Names an agent by its own and its project's identifier: another project's does not exist. */
export interface AgentKey {
  id: string
  project_id: number
}

/** An agent of a project; 404 where it is none. */
export async function requireAgent(sql: Sql, key: AgentKey): Promise<AgentRow> {
  const row = isId('agent', key.id) ? await findAgent(sql, key) : undefined
  if (!row) throw notFound('agent_not_found', 'agent', key.id.slice(0, 100))
  return row
}

/**
 * The agent that a path names in a project that it names too, of the caller's organization, with what its tasks tell of it; one
 * statement. 404 for whichever of the two does not exist.
 */
export async function requireAgentWithStats(
  sql: Sql,
  path: { project_id: string; agent_id: string },
  principal: Pick<Principal, 'org_id'>,
): Promise<AgentRow & { stats: AgentStats }> {
  const project_id = projectNumber(path.project_id)
  const { fragment } = sql
  const [row] =
    project_id === undefined || !isId('agent', path.agent_id)
      ? []
      : await sql.run<AgentRow & { stats: AgentStats }>(fragment`
          select ${columns(sql)}, (select to_json(s) from (${agentStats(sql, path.agent_id)}) s) as stats
          from agent where id = ${path.agent_id} and project_id = (
            select id from project where id = ${project_id} and org_id = ${principal.org_id})`)
  if (row) return row
  await requireProject(sql, path.project_id, principal)
  throw notFound('agent_not_found', 'agent', path.agent_id.slice(0, 100))
}

async function findAgent(sql: Sql, key: AgentKey): Promise<AgentRow | undefined> {
  const [row] = await sql.run<AgentRow>(sql.fragment`
    select ${columns(sql)} from agent where id = ${key.id} and project_id = ${key.project_id}`)
  return row
}

/** Locks an agent for the rest of the transaction, so that what is read stays true; 404 where it is gone. */
export async function lockAgent(tx: Sql, key: AgentKey): Promise<AgentRow> {
  const [row] = await tx.run<AgentRow>(tx.fragment`
    select ${columns(tx)} from agent where id = ${key.id} and project_id = ${key.project_id} for update`)
  if (!row) throw notFound('agent_not_found', 'agent', key.id)
  return row
}

/** Locks the agent of a name; undefined where the project has none. */
export async function lockAgentByName(tx: Sql, project_id: number, name: string): Promise<AgentRow | undefined> {
  const [row] = await tx.run<AgentRow>(tx.fragment`
    select ${columns(tx)} from agent where project_id = ${project_id} and name = ${name} for update`)
  return row
}

/** Creates an agent in `creating`, with its first version; a name that is taken is `agent_conflict` (decision D44). */
export async function insertAgent(
  tx: Sql,
  id: string,
  project_id: number,
  content: AgentContent,
  by: { user_id: string; subject: string },
  launch_trigger: 'create' | 'launch',
): Promise<AgentRow> {
  const { name, description, config, environment, metadata } = content
  return answerConstraints(answersOf({ project_id, name }), async () => {
    const [row] = await tx.run<AgentRow>(tx.fragment`
      insert into agent (id, project_id, name, description, status, settles_to, launch_trigger, config, environment, metadata, created_by, token_subject)
      values (${id}, ${project_id}, ${name}, ${description}, 'creating', 'running', ${launch_trigger}, ${jsonb(config)}, ${environment},
        ${jsonb(metadata)}, ${by.user_id}, ${by.subject})
      returning ${columns(tx)}`)
    await insertVersion(tx, row!, by.user_id)
    return row!
  })
}

/**
 * Gives a locked agent new content as its next version, in `updating`. `settles_to` is where it returns; `updated_at`
 * always advances (decision D37).
 */
export async function updateAgent(
  tx: Sql,
  key: AgentKey,
  content: AgentContent,
  settles_to: AgentRow['settles_to'],
  user_id: string,
): Promise<AgentRow> {
  const { name, description, config, environment, metadata } = content
  return answerConstraints(answersOf({ project_id: key.project_id, name }), async () => {
    const [row] = await tx.run<AgentRow>(tx.fragment`
      update agent set name = ${name}, description = ${description}, config = ${jsonb(config)}, environment = ${environment},
        metadata = ${jsonb(metadata)}, version = version + 1, revision = revision + 1, status = 'updating', settles_to = ${settles_to},
        settle_attempts = 0, updated_at = greatest(now(), updated_at + interval '1 millisecond')
      where id = ${key.id} and project_id = ${key.project_id}
      returning ${columns(tx)}`)
    if (!row) throw notFound('agent_not_found', 'agent', key.id)
    await insertVersion(tx, row, user_id)
    return row
  })
}

async function insertVersion(tx: Sql, row: AgentRow, user_id: string): Promise<void> {
  await tx`
    insert into agent_version (agent_id, version, name, description, config, environment, created_by)
    values (${row.id}, ${row.version}, ${row.name}, ${row.description}, ${jsonb(row.config)}, ${row.environment}, ${user_id})`
}

/**
 * Moves an agent by an action if its state allows, and returns it; undefined if not. Check and change are one
 * statement, so of two callers at once only one can pass (decision D46).
 */
export async function moveAgent(
  tx: Sql,
  id: string,
  action: AgentAction,
  token_subject: string | null,
): Promise<AgentRow | undefined> {
  const { from, to } = agentActions[action]
  const [row] = await tx.run<AgentRow>(tx.fragment`
    update agent set status = ${to}, settles_to = null, launch_trigger = null, revision = revision + 1, settle_attempts = 0,
      token_subject = coalesce(${token_subject}, token_subject), updated_at = greatest(now(), updated_at + interval '1 millisecond')
    where id = ${id} and status = any(${[...from]})
    returning ${columns(tx)}`)
  return row
}

/**
 * Ends `creating` or `updating`; undefined where the agent was in neither, or another change came first (`revision`).
 * The revision stays: where the agent settles was decided by the change before, and its ETag should outlive that.
 */
export async function settleAgent(tx: Sql, id: string, revision: number): Promise<AgentRow | undefined> {
  const [row] = await tx.run<AgentRow>(tx.fragment`
    update agent set status = settles_to, settles_to = null, launch_trigger = null, settle_attempts = 0
    where id = ${id} and revision = ${revision} and status in ('creating', 'updating')
    returning ${columns(tx)}`)
  return row
}

/** Counts a failed attempt to settle; the third, or one a minute after the change, leads to `error` (decision D34). */
export async function failToSettle(tx: Sql, id: string, revision: number): Promise<AgentState | undefined> {
  const [row] = await tx<{ status: AgentState }>`
    update agent set settle_attempts = settle_attempts + 1,
      status = case when settle_attempts + 1 >= 3 or updated_at < now() - interval '60 seconds' then 'error' else status end,
      settles_to = case when settle_attempts + 1 >= 3 or updated_at < now() - interval '60 seconds' then null else settles_to end
    where id = ${id} and revision = ${revision} and status in ('creating', 'updating')
    returning status`
  return row?.status
}

/** Agents whose creation or update was not settled by the process that made it. */
export async function listUnsettled(sql: Sql, limit: number): Promise<{ id: string; project_id: number }[]> {
  return sql`select id, project_id from agent where status in ('creating', 'updating') order by updated_at limit ${limit}`
}

/**
 * Removes an agent with its versions. Its tasks, log and metrics are invisible without it; the engine, told by
 * `cancelTasks`, purges them in batches, so that nobody waits for a large agent (decision D45).
 */
export async function deleteAgent(tx: Sql, id: string): Promise<void> {
  await tx`delete from agent where id = ${id}`
}

/** Adds up what the connections of all processes have counted of agents; gives how many rows went. */
export async function foldAgentCounts(sql: Sql): Promise<number> {
  return sql.begin(async (tx) => {
    // Alone: nobody else writes under backend 0. Rows that are being written are left for the next time.
    const [{ alone } = { alone: false }] = await tx<{ alone: boolean }>`
      select pg_try_advisory_xact_lock(hashtext('cadre agent counts')) as alone`
    if (!alone) return 0
    const [folded] = await tx<{ rows: number }>`
      with idle as materialized (
        select project_id, status, backend from agent_count where backend <> 0 limit ${foldBatch} for update skip locked
      ), gone as (
        delete from agent_count c using idle i
        where c.project_id = i.project_id and c.status = i.status and c.backend = i.backend returning c.*
      ), kept as (
        insert into agent_count as c (project_id, status, backend, agents)
        select project_id, status, 0, sum(agents) from gone group by project_id, status
        on conflict (project_id, status, backend) do update set agents = c.agents + excluded.agents
      )
      select count(*) as rows from gone`
    return folded!.rows
  })
}

const foldBatch = 1000

function answersOf({ project_id, name }: { project_id: number; name: string }): ConstraintAnswers {
  return {
    agent_project_id_fkey: () => notFound('project_not_found', 'project', project_id),
    agent_name: () =>
      new Problem('agent_conflict', { resource_type: 'agent', conflicting_field: 'name', conflicting_value: name }),
  }
}

/** A new agent's identifier, known before the row so that its secrets can be bound to it. */
export function newAgentId(): string {
  return newId('agent')
}
