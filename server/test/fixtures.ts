import type { NewTask } from '../src/engine/commands/new-task.ts'
import type { Sql } from '../src/platform/postgres/database.ts'
import { newId } from '../src/platform/ids.ts'
import { eventually, type Send } from './harness.ts'

interface Project {
  id: number
  name: string
  created_at: string
  updated_at: string
}

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

/** A new project of the caller as its creation answers, and the path that its resources are below. */
export async function createProject(send: Send, name: string): Promise<Project & { path: string }> {
  const project = await created(send, '/api/v1/projects', { name })
  return { ...project, path: `/api/v1/projects/${project.id}` }
}

/** An agent below the path of a project, once it is running. `fields` are those of its creation. */
export async function createAgent(send: Send, project: string, fields: object): Promise<{ id: string; name: string }> {
  const agent = await created(send, `${project}/agents`, fields)
  await eventually(async () => (await send('GET', `${project}/agents/${agent.id}`)).body.status === 'running')
  return agent
}

/** A task once it has a status, or is finished where none is named. */
export function waitForTask(send: Send, project: string, id: string, status?: string): Promise<any> {
  return eventually(async () => {
    const { body } = await send('GET', `${project}/tasks/${id}${status === undefined ? '?wait=10' : ''}`)
    return (status === undefined ? body.finished_at !== null : body.status === status) && body
  })
}

/** The stored events of a task, at most the first 1,000. */
export async function eventsOfTask(
  send: Send,
  project: string,
  id: string,
): Promise<{ sequence: number; type: string; created_at: string; data: any }[]> {
  return (await send('GET', `${project}/tasks/${id}/events?limit=1000`)).body.events
}

async function created(send: Send, path: string, fields: object): Promise<any> {
  const { status, body } = await send('POST', path, { body: fields })
  if (status !== 201) throw new Error(`POST ${path}: ${status} ${JSON.stringify(body)}`)
  return body
}
