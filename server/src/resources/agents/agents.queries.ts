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

/** An agent as a path names it, in a project that it names too, for a caller of an organization. */
export interface AgentPath extends AgentKey {
  org_id: string
}

/** An agent with its task statistics. */
export type AgentWithStats = AgentRow & { stats: AgentStats }

/**
 * The agents of the given paths, in their order, with their task statistics; undefined for one of another organization
 * or a missing one. One statement, which finds each by its key however large the tables are.
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

/** A path of a caller's, with the credential that the caller has. */
export interface AskedPath extends AgentPath {
  credential_id: string
  /** A request whose earlier equal ones are looked for. */
  repeated?: AskedRequest | undefined
}

/** An agent that is asked to do a task, and what decides whether it takes one. */
export interface AgentAndRoom extends AgentRow {
  project_name: string
  /** As many tasks wait for it already as may. */
  is_full: boolean
  /** Whether there is a budget that its tasks for this caller spend. */
  has_budget: boolean
  /** The events of tasks that webhooks have subscribed to, each once, in the order of their names; null where none has. */
  subscriptions: string[] | null
  /** Whose model tokens it uses, and how many it has used in the running hour. */
  token_subject: string
  tokens_used: number
  /** Of its organization: see `LockedTask`. */
  providers_version: number
  /** Whether its `last_activity` is of this second. */
  is_fresh: boolean
  /** Whether the request of its path has an earlier equal one; undefined where no path of the statement has one. */
  is_repeated?: boolean
}

/** The agents that paths name, as `findAgentsWithStats` finds them, with what decides whether each takes a task. */
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

/** Rows of agents that paths name, as `found`, each with its place among them, as `asked.nth`; each is found by its key. */
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

/** An agent to be created by a user of an organization. */
export interface NewAgent extends AgentKey {
  /** The project as the request named it, for the answer that there is none (decision D24). */
  project_named: string | number
  org_id: string
  content: AgentContent
  created_by: string
  /** Whose model tokens it uses. */
  token_subject: string
}

/** What is written with new agents, each by the agent's id: of those that are not made it is not written. */
export interface MadeWithAgents {
  logs: readonly AgentLogRow[]
  /** Their `after` is without the times of the agent, which the statement adds. */
  audits: readonly AuditRow[]
  events: readonly NewEvent[]
}

/**
 * Creates agents, each with its first version, its log and audit entries and its event, all in one statement, so that it needs no
 * transaction; gives their rows in their order. Nothing is left to provision, so they run; the rows say `creating`, as answers do (decision D34). In
 * the place of one whose project the organization does not have is `project_not_found`, of one whose name is taken `agent_conflict`
 * (decision D44).
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
export async function failProvisioning(tx: Sql, id: string, revision: number): Promise<AgentState | undefined> {
  const [row] = await tx<{ status: AgentState }>`
    update agent set settle_attempts = settle_attempts + 1,
      status = case when settle_attempts + 1 >= 3 or updated_at < now() - interval '60 seconds' then 'error' else status end,
      settles_to = case when settle_attempts + 1 >= 3 or updated_at < now() - interval '60 seconds' then null else settles_to end
    where id = ${id} and revision = ${revision} and status in ('creating', 'updating')
    returning status`
  return row?.status
}

/** Agents whose creation or update was not settled by the process that made it. */
export async function listUnprovisioned(sql: Sql, limit: number): Promise<{ id: string; project_id: number }[]> {
  return sql`select id, project_id from agent where status in ('creating', 'updating') order by updated_at limit ${limit}`
}

/**
 * Removes an agent with its versions. Its tasks, log and metrics are invisible without it. The engine, called by
 * `cancelTasks`, purges them in batches, so that no caller waits for a large agent (decision D45).
 */
export async function deleteAgent(tx: Sql, id: string): Promise<void> {
  await tx`
    with versions as (delete from agent_version where agent_id = ${id})
    delete from agent where id = ${id}`
}

/** Adds up what the connections of all processes have counted of agents; gives how many rows went. */
export async function foldAgentCounts(sql: Sql): Promise<number> {
  return sql.begin(async (tx) => {
    // Alone: no other transaction writes under backend 0. Locked rows are left for the next time.
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

/** A new agent's identifier, known before the row so that its secrets can be bound to it. */
export function newAgentId(): string {
  return newId('agent')
}
