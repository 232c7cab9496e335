import { mcpBounds } from '#contract/doors/mcp.ts'
import type { Principal } from '../../http/access/principal.ts'
import type { Sql } from '../../platform/postgres/database.ts'
import { isId } from '../../platform/ids.ts'
import { projectNumber } from '../../resources/projects/projects.queries.ts'

/** An agent that is published to MCP. */
export interface PublishedAgent {
  id: string
  project_id: number
  project: string
  name: string
  description: string
  status: string
  config: Record<string, unknown>
}

const columns = (sql: Sql) =>
  sql.fragment`a.id, a.project_id, p.name as project, a.name, a.description, a.status, a.config`

/** The published agents of an organization, oldest first, so that the names of their tools are stable. */
export async function listPublished(sql: Sql, { org_id }: Pick<Principal, 'org_id'>): Promise<PublishedAgent[]> {
  return sql.run<PublishedAgent>(sql.fragment`
    select ${columns(sql)} from project p join agent a on a.project_id = p.id
    where p.org_id = ${org_id} and a.config->'doors'->'mcp'->>'published' = 'true'
    order by a.created_at, a.id limit ${mcpBounds.agents}`)
}

/** A published agent by id; undefined if the organization has none. */
export async function findPublished(
  sql: Sql,
  { org_id }: Pick<Principal, 'org_id'>,
  id: string,
): Promise<PublishedAgent | undefined> {
  if (!isId('agent', id)) return undefined
  const [row] = await sql.run<PublishedAgent>(sql.fragment`
    select ${columns(sql)} from project p join agent a on a.project_id = p.id
    where p.org_id = ${org_id} and a.id = ${id} and a.config->'doors'->'mcp'->>'published' = 'true'`)
  return row
}

/** Agents of an organization whose name or description contains a text, ordered by project and name. */
export async function searchAgents(
  sql: Sql,
  { org_id }: Pick<Principal, 'org_id'>,
  { search = '', limit }: { search?: string | undefined; limit: number },
): Promise<PublishedAgent[]> {
  const wanted = search.toLowerCase()
  return sql.run<PublishedAgent>(sql.fragment`
    select ${columns(sql)} from project p join agent a on a.project_id = p.id
    where p.org_id = ${org_id} and (position(${wanted}::text in lower(a.name)) > 0 or position(${wanted}::text in lower(a.description)) > 0)
    order by p.name, a.name limit ${limit}`)
}

/** An agent of an organization by id, by `project/name`, or by name if the name is unique. */
export async function findAgentNamed(
  sql: Sql,
  { org_id }: Pick<Principal, 'org_id'>,
  name: string,
): Promise<PublishedAgent | undefined> {
  const found = await sql.run<PublishedAgent>(sql.fragment`
    select ${columns(sql)} from project p join agent a on a.project_id = p.id
    where p.org_id = ${org_id} and (a.id = ${isId('agent', name) ? name : ''} or a.name = ${name} or p.name || '/' || a.name = ${name}) limit 2`)
  return found.length === 1 ? found[0] : undefined
}

/** The project of a task or of an approval's task; undefined if the organization has none. */
export async function findProjectOfTask(
  sql: Sql,
  { org_id }: Pick<Principal, 'org_id'>,
  task_id: string,
  agent_id?: string,
): Promise<number | undefined> {
  if (!isId('task', task_id)) return undefined
  const [row] = await sql<{ project_id: number; agent_id: string }>`
    select t.project_id, t.agent_id from task t join project p on p.id = t.project_id and p.org_id = ${org_id} where t.id = ${task_id}`
  return row && (agent_id === undefined || row.agent_id === agent_id) ? row.project_id : undefined
}

export async function findProjectOfApproval(
  sql: Sql,
  { org_id }: Pick<Principal, 'org_id'>,
  approval_id: string,
): Promise<number | undefined> {
  if (!isId('appr', approval_id)) return undefined
  const [row] = await sql<{ project_id: number }>`
    select a.project_id from approval a join project p on p.id = a.project_id and p.org_id = ${org_id} where a.id = ${approval_id}`
  return row?.project_id
}

/** The newest tasks of an organization, or of one of its agents. */
export async function listRecentTasks(
  sql: Sql,
  { org_id }: Pick<Principal, 'org_id'>,
  { agent_id, status, limit }: { agent_id?: string | undefined; status?: string | undefined; limit: number },
): Promise<{ task_id: string; agent: string; status: string; created_at: string }[]> {
  return sql`
    select t.id as task_id, p.name || '/' || a.name as agent, t.status, t.created_at
    from task t join project p on p.id = t.project_id and p.org_id = ${org_id} join agent a on a.id = t.agent_id
    where (${agent_id ?? null}::text is null or t.agent_id = ${agent_id ?? null})
      and (${status ?? null}::text is null or t.status = ${status ?? null})
    order by t.created_at desc, t.id desc limit ${limit}`
}

/** Pending approvals of an organization, newest first. */
export async function listPendingApprovals(
  sql: Sql,
  { org_id }: Pick<Principal, 'org_id'>,
  { task_id, limit }: { task_id?: string | undefined; limit: number },
): Promise<
  { approval_id: string; task_id: string; kind: string; tool: string; arguments: unknown; expires_at: string | null }[]
> {
  return sql`
    select a.id as approval_id, a.task_id, a.kind, a.tool, a.arguments, a.expires_at
    from approval a join project p on p.id = a.project_id and p.org_id = ${org_id}
    where a.status = 'pending' and (${task_id ?? null}::text is null or a.task_id = ${task_id ?? null})
      and not exists (select from removed_agent r where r.agent_id = a.agent_id)
    order by a.created_at desc, a.id desc limit ${limit}`
}

/** Open questions of a task. */
export async function listQuestions(sql: Sql, task_id: string): Promise<{ step_id: string; question: string }[]> {
  return sql`
    select id as step_id, coalesce(input->'arguments'->>'question', '') as question from task_step
    where task_id = ${task_id} and type = 'wait' and name = 'request_input' and status = 'started' and not input ? 'is_callers'
    order by index`
}

/** A project of an organization by id or name; undefined if there is none. */
export async function findProjectNamed(
  sql: Sql,
  { org_id }: Pick<Principal, 'org_id'>,
  name: string,
): Promise<number | undefined> {
  const number = projectNumber(name)
  const [row] = await sql<{ id: number }>`
    select id from project where org_id = ${org_id} and (id = ${number ?? null} or lower(name) = lower(${name}))
    order by id = ${number ?? null} desc nulls last limit 1`
  return row?.id
}
