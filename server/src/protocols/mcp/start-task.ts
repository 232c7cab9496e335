import { createHash } from 'node:crypto'
import { isObject } from '#contract/core/merge-patch.ts'
import { projectId } from '#contract/core/project-id.ts'
import { notFound, Problem } from '#contract/core/problems.ts'
import { openaiBounds } from '#contract/doors/openai.ts'
import type { TaskInput } from '#contract/tasks/tasks.ts'
import { userAgentOf } from '../../http/access/user-agent.ts'
import type { NewTask } from '../../engine/commands/new-task.ts'
import { inputIssues } from '../../engine/tools/data-schema.ts'
import { judgeInput } from '../../engine/tools/schemas/schema-judge.ts'
import { countSubject } from '../../http/access/rate-limit.ts'
import { idempotencyKey, idempotently } from '../../http/idempotency.ts'
import { renderProblem } from '../../http/error-formats.ts'
import type { Sql } from '../../platform/postgres/database.ts'
import { newId } from '../../platform/ids.ts'
import { madeBy, requireAskedAccepting } from '../../resources/tasks/task-requests.ts'
import { requireMade, type TaskKey } from '../../resources/tasks/tasks.queries.ts'
import type { McpCall } from './mcp-call.ts'
import type { PublishedAgent } from './published.queries.ts'

/** The input of a call for an agent. */
export interface AskedTask {
  agent: Pick<PublishedAgent, 'id' | 'project_id'>
  input: TaskInput
  thread_id?: string | undefined
}

/**
 * Creates the task of a call and returns its location; once per Idempotency-Key if the call has one. Throws the
 * problems of creating a task.
 */
export async function startTask(call: McpCall, asked: AskedTask): Promise<TaskKey> {
  const { sql, principal, http, request } = call
  const key = idempotencyKey(request.headers['idempotency-key'])
  const { rates } = http.authentication
  await countSubject(http.authentication.sql, rates, 'tasks.create', principal.subject)
  const make = async (tx: Sql): Promise<TaskKey> => {
    const task = await newTask({ ...call, sql: tx }, asked)
    await call.context.engine.enqueue(tx, task)
    const { id, project_id } = await requireMade(
      tx,
      { id: task.id, project_id: asked.agent.project_id },
      notFound('agent_not_found', 'agent', asked.agent.id),
    )
    return { id, project_id }
  }
  if (key === undefined) return sql.begin(make)
  const { credential_id: subject } = principal
  const body = createHash('sha256').update(JSON.stringify(asked)).digest()
  const stored = await idempotently(
    http,
    { subject, key, method: 'POST', url: request.url, body },
    async (tx) => ({ status: 201, body: await make(tx) }),
    (problem) => renderProblem(problem, 'agents', request.id),
  )
  if (stored.status >= 400) throw keptProblem(stored.body)
  return stored.body as TaskKey
}

/** The problem of a refusal that was stored for its Idempotency-Key. */
function keptProblem(body: unknown): Problem {
  const error = isObject(body) && isObject(body['error']) ? body['error'] : {}
  const { message } = error
  return new Problem('validation_error', undefined, {
    message: typeof message === 'string' ? message : 'The call was refused.',
  })
}

async function newTask(call: McpCall, { agent, input, thread_id }: AskedTask): Promise<NewTask> {
  const asked = await call.loadAsked({
    ...call,
    params: { project_id: projectId(agent.project_id), agent_id: agent.id },
  })
  requireAskedAccepting(asked)
  await judgeInput(asked.config, input, { ...agent, ...call.principal })
  const [issue] = inputIssues(asked.config['input_schema'], input)
  if (issue) throw new Problem('validation_error', [issue], { message: `${issue.field} ${issue.message}.` })
  const client = userAgentOf(call.request, openaiBounds.client)
  return {
    ...madeBy(call),
    id: newId('task'),
    agent: asked,
    input,
    thread_id: thread_id ?? null,
    metadata: { door: { kind: 'mcp', client } },
  }
}
