import type { NewTask } from '../src/engine/commands/new-task.ts'
import type { Sql } from '../src/platform/postgres/database.ts'
import { newId } from '../src/platform/ids.ts'

/** An agent in a new project, for tests of the engine that bypass the API. */
export async function insertTestAgent(sql: Sql, config: Record<string, unknown> = {}): Promise<NewTask['agent']> {
  const [org_id, id] = [newId('org'), newId('agent')]
  await sql`insert into organization (id, name) values (${org_id}, 'Tests')`
  const [project] = await sql<{
    id: number
  }>`insert into project (org_id, name) values (${org_id}, ${id.slice(-20)}) returning id`
  const project_id = project!.id
  await sql`
    insert into agent (id, project_id, name, status, config, created_by, token_subject)
    values (${id}, ${project_id}, 'agent', 'running', ${JSON.stringify({ model: 'test/witness', ...config })}, ${newId('user')}, ${newId('key')})`
  return { id, project_id, version: 0, status: 'running', settles_to: null, config }
}

/** A task for it. */
export function newTestTask(agent: NewTask['agent'], input: string, more: Partial<NewTask> = {}): NewTask {
  return { id: newId('task'), agent, input, created_by: newId('user'), request_id: null, ...more }
}
