import { threadTitle_characters, type threadStates } from '#contract/tasks/threads.ts'
import { notFound } from '#contract/core/problems.ts'
import { projectId } from '#contract/core/project-id.ts'
import { jsonb, type Sql } from '../../platform/postgres/database.ts'
import { isId, newId } from '../../platform/ids.ts'

/** The row of a thread, and whether it has open tasks. */
export interface ThreadRow {
  id: string
  project_id: number
  agent_id: string
  status: (typeof threadStates)[number]
  title: string | null
  tasks: number
  last_task_at: string | null
  metadata: Record<string, unknown>
  created_by: string
  created_at: string
  updated_at: string
}

/** Key of a thread within its project. */
export interface ThreadKey {
  id: string
  project_id: number
}

/** SQL for the title of a thread: the text of its first user message. */
const title = ({ fragment }: Sql) => fragment`(
  select left(case jsonb_typeof(t.input) when 'array' then (
      select case jsonb_typeof(m.message->'content') when 'string' then m.message->>'content'
        else (select string_agg(part->>'text', ' ') from jsonb_array_elements(m.message->'content') part) end
      from jsonb_array_elements(t.input) with ordinality m (message, place)
      where m.message->>'role' = 'user' order by m.place limit 1
    ) else t.input#>>'{}' end, ${threadTitle_characters}::int)
  from task t where t.thread_id = h.id order by t.thread_position limit 1) as title`

const columns = (sql: Sql) => sql.fragment`
  ${title(sql)}, (select count(*) from task t where t.thread_id = h.id) as tasks,
  (select t.created_at from task t where t.thread_id = h.id order by t.thread_position desc limit 1) as last_task_at,
  h.id, h.project_id, h.agent_id, h.metadata, h.created_by, h.created_at, h.updated_at,
  case when exists (select from task t where t.thread_id = h.id and t.finished_at is null) then 'busy' else 'idle' end as status`

/** SQL condition that hides threads of deleted agents. */
const visible = (sql: Sql) => sql.fragment`exists (select from agent a where a.id = h.agent_id)`

/** A thread in a response. */
export function threadView(row: ThreadRow) {
  return { ...row, project_id: projectId(row.project_id) }
}

/** Creates a thread of an agent; throws 404 if the project does not have the agent. */
export async function insertThread(
  sql: Sql,
  thread: { project_id: number; agent_id: string; metadata: Record<string, unknown>; created_by: string },
): Promise<ThreadRow> {
  const { project_id, agent_id, metadata, created_by } = thread
  // Locks the agent, so that a concurrent deletion does not leave a thread behind.
  const [row] = await sql<ThreadRow>`
    with agent as (select id from agent where id = ${agent_id} and project_id = ${project_id} for key share)
    insert into thread (id, project_id, agent_id, metadata, created_by)
    select ${newId('thread')}, ${project_id}, id, ${jsonb(metadata)}, ${created_by} from agent
    returning id, project_id, agent_id, metadata, created_by, created_at, updated_at, 'idle' as status,
      null as title, 0::bigint as tasks, null as last_task_at`
  if (!row) throw notFound('agent_not_found', 'agent', agent_id.slice(0, 100))
  return row
}

/** A thread of a project; throws 404 if it does not exist. */
export async function requireThread(sql: Sql, { id, project_id }: ThreadKey): Promise<ThreadRow> {
  const [row] = isId('thread', id)
    ? await sql.run<ThreadRow>(sql.fragment`
        select ${columns(sql)} from thread h where id = ${id} and project_id = ${project_id} and ${visible(sql)}`)
    : []
  if (!row) throw notFound('thread_not_found', 'thread', id.slice(0, 100))
  return row
}

/** A page of a project's threads, newest first, and their total number. */
export async function listThreads(
  sql: Sql,
  filter: { project_id: number; agent_id?: string | undefined; limit: number; offset: number },
): Promise<{ threads: ThreadRow[]; total: number }> {
  const { project_id, agent_id, limit, offset } = filter
  const { fragment } = sql
  const ofAgent = agent_id === undefined ? fragment`` : fragment`and h.agent_id = ${agent_id}`
  const where = fragment`h.project_id = ${project_id} and not h.hidden and ${visible(sql)} ${ofAgent}`
  const [count] = await sql.run<{ total: number }>(fragment`select count(*) as total from thread h where ${where}`)
  const threads = await sql.run<ThreadRow>(fragment`
    select ${columns(sql)} from thread h where ${where} order by h.id desc limit ${limit} offset ${offset}`)
  return { threads, total: count?.total ?? 0 }
}

/**
 * Deletes a thread unless it has open tasks; returns whether it did. Locks its row, so that no task can join
 * concurrently.
 */
export async function deleteThread(tx: Sql, { id, project_id }: ThreadKey): Promise<boolean> {
  await tx`select from thread where id = ${id} and project_id = ${project_id} for update`
  const deleted = await tx`
    delete from thread h where id = ${id} and project_id = ${project_id}
      and not exists (select from task t where t.thread_id = h.id and t.finished_at is null)
    returning id`
  return deleted.length > 0
}
