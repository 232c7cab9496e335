import { agentActions, type AgentAction, type AgentState } from '#contract/resources/agent-lifecycle.ts'
import { notFound, Problem } from '#contract/core/problems.ts'
import { answerConstraints } from '../../platform/postgres/constraints.ts'
import { isRepeated, type AskedRequest } from '../../engine/commands/repeated-requests.queries.ts'
import { jsonb, type Fragment, type Sql } from '../../platform/postgres/database.ts'
import { isId, newId } from '../../platform/ids.ts'
import { subscriptionsIn } from '../../engine/journal/task-outbox.ts'
import { insertLogRows, type AgentLogRow } from '../../events/agent-log.ts'
import { insertAudits, type AuditRow } from '../../events/audit/audit.ts'
import { insertEvents, noteEvents, type NewEvent, type WrittenEvent } from '../../events/outbox.ts'
import { agentStats, type AgentStats } from '../tasks/stats.queries.ts'

/** The row of an agent. `config` has no environment variables; those are encrypted in `environment`. */
export interface AgentRow {
  id: string
  project_id: number
  name: string
  description: string
  status: AgentState
  /** The state after `creating` or `updating`; null in every other state. */
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

/** The content of a new agent or a new version. */
export interface AgentContent {
  name: string
  description: string
  config: Record<string, unknown>
  environment: Buffer | null
  metadata: Record<string, unknown>
}

/** Key of an agent within its project. */
export interface AgentKey {
  id: string
  project_id: number
}

/** An agent of a project; throws 404 if it does not exist. */
export async function requireAgent(sql: Sql, key: AgentKey): Promise<AgentRow> {
  const row = isId('agent', key.id) ? await findAgent(sql, key) : undefined
  if (!row) throw notFound('agent_not_found', 'agent', key.id.slice(0, 100))
  return row
}

/** The agent and project ids of a path, with the caller's organization. */
export interface AgentPath extends AgentKey {
  org_id: string
}

/** An agent with its task statistics. */
export type AgentWithStats = AgentRow & { stats: AgentStats }

/**
 * The agents of the given paths in their order, with task statistics; undefined for an agent that does not exist in
 * the organization. One statement that finds each by primary key.
 */
export async function findAgentsWithStats(
  sql: Sql,
  paths: readonly AgentPath[],
): Promise<(AgentWithStats | undefined)[]> {
  const { fragment } = sql
  const rows = await sql.run<AgentWithStats & { nth: number }>(fragment`
    select asked.nth::int, ${columns(sql)}, (select to_json(s) from (${agentStats(sql, fragment`found.id`)}) s) as stats
    from ${named(sql, paths)}`)
  return inOrder(paths, rows)
}

/** A path with the credential of its caller. */
export interface AskedPath extends AgentPath {
  credential_id: string
  /** A request for which earlier equal requests are searched. */
  repeated?: AskedRequest | undefined
}

/** An agent for a new task, with what decides whether it accepts the task. */
export interface AgentAndRoom extends AgentRow {
  project_name: string
  /** Whether its queue has reached the limit. */
  is_full: boolean
  /** Whether a budget applies to its tasks for this caller. */
  has_budget: boolean
  /**
   * The task events that webhooks have subscribed to, without duplicates, ordered by name; null if there are none.
   */
  subscriptions: string[] | null
  /** The subject of its token limit, and the tokens used in the current hour. */
  token_subject: string
  tokens_used: number
  /** Version of the organization's providers: see `LockedTask`. */
  providers_version: number
  /** Whether its `last_activity` is in the current second. */
  is_fresh: boolean
  /** Whether there is an earlier equal request for its path; undefined if no path of the statement asks for that. */
  is_repeated?: boolean
}

/** Like `findAgentsWithStats`, with what decides whether each agent accepts a task. */
export async function findAgentsAndRoom(
  sql: Sql,
  paths: readonly AskedPath[],
  queuedMax: number,
): Promise<(AgentAndRoom | undefined)[]> {
  const { fragment } = sql
  const rows = await sql.run<AgentAndRoom & { nth: number }>(fragment`
    select asked.nth::int, ${columns(sql)}, project_name, token_subject,
      exists (select from task t where t.agent_id = found.id and t.status = 'queued' offset ${queuedMax - 1} limit 1) as is_full,
      exists (select from budget b where b.subject in (found.id, 'proj_' || found.project_id, asked.of_org,
        (${paths.map(({ credential_id }) => credential_id)}::text[])[asked.nth])) as has_budget,
      ${subscriptionsIn(sql, fragment`asked.of_org`)} as subscriptions,
      coalesce((select u.tokens from token_usage u
        where u.subject = found.token_subject and u.hour = date_trunc('hour', now(), 'UTC')), 0) as tokens_used,
      coalesce((select o.model_providers_version from organization o where o.id = asked.of_org), 0) as providers_version,
      coalesce(found.last_activity > now() - interval '1 second', false) as is_fresh${areRepeatedIn(sql, paths)}
    from ${named(sql, paths)}`)
  return inOrder(paths, rows)
}

const noHash = Buffer.alloc(0)

function areRepeatedIn({ fragment }: Sql, paths: readonly AskedPath[]): Fragment {
  if (paths.every(({ repeated }) => repeated === undefined)) return fragment``
  const asked = paths.map(({ credential_id, repeated }) => repeated ?? { credential_id, hash: noHash, again: false })
  return fragment`, ${isRepeated({ fragment }, asked, fragment`asked.nth`)} as is_repeated`
}

/** SQL for the agents of paths as `found`, by primary key, with their positions as `asked.nth`. */
function named({ fragment }: Sql, paths: readonly AgentPath[]): Fragment {
  return fragment`unnest(${paths.map(({ id }) => id)}::text[], ${paths.map(({ project_id }) => project_id)}::bigint[],
      ${paths.map(({ org_id }) => org_id)}::text[]) with ordinality as asked(agent_id, of_project, of_org, nth)
    cross join lateral (
      select agent.*, p.name as project_name from agent join project p on p.id = asked.of_project and p.org_id = asked.of_org
      where agent.id = asked.agent_id and agent.project_id = asked.of_project limit 1
    ) found`
}

function inOrder<T>(paths: readonly AgentPath[], rows: readonly (T & { nth: number })[]): (T | undefined)[] {
  const found: (T | undefined)[] = paths.map(() => undefined)
  for (const { nth, ...row } of rows) found[nth - 1] = row as T
  return found
}

async function findAgent(sql: Sql, key: AgentKey): Promise<AgentRow | undefined> {
  const [row] = await sql.run<AgentRow>(sql.fragment`
    select ${columns(sql)} from agent where id = ${key.id} and project_id = ${key.project_id}`)
  return row
}

/** Locks an agent until the transaction ends; throws 404 if it does not exist. */
export async function lockAgent(tx: Sql, key: AgentKey): Promise<AgentRow> {
  const [row] = await tx.run<AgentRow>(tx.fragment`
    select ${columns(tx)} from agent where id = ${key.id} and project_id = ${key.project_id} for update`)
  if (!row) throw notFound('agent_not_found', 'agent', key.id)
  return row
}

/** Locks an agent by name; undefined if the project has none. */
export async function lockAgentByName(tx: Sql, project_id: number, name: string): Promise<AgentRow | undefined> {
  const [row] = await tx.run<AgentRow>(tx.fragment`
    select ${columns(tx)} from agent where project_id = ${project_id} and name = ${name} for update`)
  return row
}

/** An agent to create. */
export interface NewAgent extends AgentKey {
  /** The project id of the request, for the 404 (decision D24). */
  project_named: string | number
  org_id: string
  content: AgentContent
  created_by: string
  /** The subject of its token limit. */
  token_subject: string
}

/** Entries that are written with new agents, by agent id; not written for agents that are not created. */
export interface MadeWithAgents {
  logs: readonly AgentLogRow[]
  /** Their `after` lacks the timestamps of the agent, which the statement adds. */
  audits: readonly AuditRow[]
  events: readonly NewEvent[]
}

/**
 * Creates agents with their first version, log and audit entries and event in one statement, which needs no
 * transaction. Returns the rows in their order. New agents need no provisioning and are stored as running, but the
 * returned rows say `creating`, as responses do (decision D34). An agent that cannot be created has a problem
 * instead: `project_not_found`, or `agent_conflict` for a taken name (decision D44).
 */
export async function insertAgents(
  sql: Sql,
  agents: readonly NewAgent[],
  { logs, audits, events }: MadeWithAgents,
): Promise<(AgentRow | Problem)[]> {
  const { fragment } = sql
  const asked = agents.map(({ content, ...agent }, nth) => ({
    ...agent,
    ...content,
    nth,
    environment: content.environment?.toString('base64'),
  }))
  const isMade = (id: Fragment): Fragment => fragment`${id} in (select id from made)`
  const iso = (time: Fragment): Fragment =>
    fragment`to_char(${time} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`
  const times = fragment`(select jsonb_build_object('created_at', ${iso(fragment`made.created_at`)}, 'updated_at', ${iso(fragment`made.updated_at`)})
    from made where made.id = e.target)`
  const rows = await sql.run<AgentRow & WrittenEvent & { nth: number; is_there: boolean }>(fragment`
    with given as materialized (
      select a.*
      from jsonb_to_recordset(${jsonb(asked)}::jsonb) as a(nth int, id text, org_id text, project_id bigint, name text, description text,
        config jsonb, environment text, metadata jsonb, created_by text, token_subject text)
    ), held as materialized (
      -- One that is being deleted is waited for, and then not there. No other one is deleted before the agents are stored.
      select p.id, p.org_id from project p where p.id in (select project_id from given) for key share
    ), asked as materialized (
      select g.*, exists (select from held h where h.id = g.project_id and h.org_id = g.org_id) as is_there from given g
    ), made as (
      insert into agent (id, project_id, name, description, status, config, environment, metadata, created_by, token_subject)
      -- In one order, so that of two such statements none waits for the other while that waits for it.
      select id, project_id, name, description, 'running', config, decode(environment, 'base64'), metadata, created_by, token_subject
      from asked where is_there order by project_id, name
      on conflict (project_id, name) do nothing
      returning ${columns(sql)}
    ), versions as (
      insert into agent_version (agent_id, version, name, description, config, environment, created_by)
      select id, version, name, description, config, environment, created_by from made
    ), logged as (${insertLogRows(sql, logs, isMade(fragment`entry.agent_id`))}
    ), audited as (${insertAudits(sql, audits, { condition: isMade(fragment`e.target`), after: fragment`e.after || ${times}` })}
    ), emitted as (${insertEvents(sql, events, isMade(fragment`e.agent_id`))})
    select asked.nth, asked.is_there, made.*, (select coalesce(bool_and(is_matched), true) from emitted) as is_matched
    from asked left join made on made.id = asked.id order by asked.nth`)
  noteEvents(sql, rows.slice(0, 1))
  return rows.map(({ nth, is_there, is_matched: _, ...row }) => {
    if (row.id !== null) return { ...row, status: 'creating' }
    const { project_named, content } = agents[nth]!
    return is_there ? nameTaken(content.name) : notFound('project_not_found', 'project', project_named)
  })
}

/**
 * Stores the next version of a locked agent, which becomes `updating`. `settles_to` is the state after it;
 * `updated_at` always increases (decision D37).
 */
export async function updateAgent(
  tx: Sql,
  key: AgentKey,
  content: AgentContent,
  settles_to: AgentRow['settles_to'],
  user_id: string,
): Promise<AgentRow> {
  const { name, description, config, environment, metadata } = content
  return answerConstraints({ agent_name: () => nameTaken(name) }, async () => {
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
 * Changes the state of an agent by an action if the current state allows it; returns undefined otherwise. Check and
 * change are one statement, so of two concurrent callers only one succeeds (decision D46).
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
 * Ends `creating` or `updating`; returns undefined if the agent is in another state or has another `revision`. The
 * revision does not change: the ETag of the update stays valid.
 */
export async function settleAgent(tx: Sql, id: string, revision: number): Promise<AgentRow | undefined> {
  const [row] = await tx.run<AgentRow>(tx.fragment`
    update agent set status = settles_to, settles_to = null, launch_trigger = null, settle_attempts = 0
    where id = ${id} and revision = ${revision} and status in ('creating', 'updating')
    returning ${columns(tx)}`)
  return row
}

/**
 * Counts a failed provisioning attempt. The third, or one more than a minute after the change, sets `error` (decision
 * D34).
 */
export async function failProvisioning(tx: Sql, id: string, revision: number): Promise<AgentState | undefined> {
  const [row] = await tx<{ status: AgentState }>`
    update agent set settle_attempts = settle_attempts + 1,
      status = case when settle_attempts + 1 >= 3 or updated_at < now() - interval '60 seconds' then 'error' else status end,
      settles_to = case when settle_attempts + 1 >= 3 or updated_at < now() - interval '60 seconds' then null else settles_to end
    where id = ${id} and revision = ${revision} and status in ('creating', 'updating')
    returning status`
  return row?.status
}

/** Agents whose creation or update has not been provisioned. */
export async function listUnprovisioned(sql: Sql, limit: number): Promise<{ id: string; project_id: number }[]> {
  return sql`select id, project_id from agent where status in ('creating', 'updating') order by updated_at limit ${limit}`
}

/**
 * Deletes an agent with its versions. Its tasks, log and metrics are invisible without it. The engine removes them in
 * batches (see `cancelTasks`), so that no caller waits for a large agent (decision D45).
 */
export async function deleteAgent(tx: Sql, id: string): Promise<void> {
  await tx`
    with versions as (delete from agent_version where agent_id = ${id})
    delete from agent where id = ${id}`
}

/** Merges the agent counts of all connections; returns the number of removed rows. */
export async function foldAgentCounts(sql: Sql): Promise<number> {
  return sql.begin(async (tx) => {
    // Only one transaction may write the rows of backend 0. Locked rows are skipped until the next run.
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

function nameTaken(name: string): Problem {
  return new Problem('agent_conflict', { resource_type: 'agent', conflicting_field: 'name', conflicting_value: name })
}

/** An id for a new agent, created before its row because its secrets are encrypted with it. */
export function newAgentId(): string {
  return newId('agent')
}
