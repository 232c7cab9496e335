import { eventAgent } from '#contract/events/events.ts'
import { writeAgentLog } from '../../events/agent-log.ts'
import { emit } from '../../events/outbox.ts'
import type { Sql } from '../../platform/postgres/database.ts'

/**
 * Failures with these codes come from the configuration: every further task would fail in the same way (decision D36).
 */
const configurationCodes = [
  'provider_credentials_refused',
  'model_not_found',
  'provider_not_configured',
  'secret_unreadable',
]
const configurationFailures = 3
/** Failures of any kind in a row, within the minutes below (decision D36). */
const anyFailures = 5
const anyFailures_minutes = 10

interface FinishedTask {
  id: string
  status: string
  code: string | null
  recent: boolean
  request_id: string | null
}

/**
 * Moves an agent to `error` when its last tasks failed in succession (decision D36), and returns whether it did. Only
 * tasks that finished after the last change of the agent count, so a restart or an update resets the count.
 *
 * Runs after the transaction in which a task failed. If the process dies in between, the next failure counts the same
 * tasks again.
 */
export async function checkFailurePolicy(sql: Sql, agent_id: string): Promise<boolean> {
  return sql.begin(async (tx) => {
    const [agent] = await tx<{
      revision: number
      name: string
      project_id: number
      org_id: string
      created_by: string
      updated_at: string
    }>`
      select a.revision, a.name, a.project_id, a.created_by, p.org_id, a.updated_at
      from agent a join project p on p.id = a.project_id where a.id = ${agent_id} and a.status = 'running'`
    if (!agent) return false
    const last = await tx<FinishedTask>`
      select id, status, error->>'code' as code, finished_at > now() - make_interval(mins => ${anyFailures_minutes}) as recent, request_id
      from task where agent_id = ${agent_id} and finished_at > ${agent.updated_at}::timestamptz and status <> 'canceled' and started_at is not null
      order by finished_at desc limit ${anyFailures}`
    const message = verdict(last)
    if (!message) return false
    const [moved] = await tx`
      update agent set status = 'error', settles_to = null, revision = revision + 1, updated_at = greatest(now(), updated_at + interval '1 millisecond')
      where id = ${agent_id} and status = 'running' and revision = ${agent.revision} returning id`
    if (!moved) return false

    const { name, project_id, org_id } = agent
    const scope = { org_id, project_id, agent_id }
    const error = { code: 'agent_error', message }
    const tasks = last.map(({ id }) => id)
    await writeAgentLog(tx, [
      {
        agent_id,
        level: 'error',
        message: `Agent running → error: ${message}`,
        context: { from: 'running', to: 'error', trigger: 'failures', tasks },
      },
    ])
    await emit(tx, 'agent.failed', scope, {
      agent: eventAgent({ id: agent_id, name, project_id, status: 'error' }),
      task: null,
      error,
    })
    await emit(tx, 'error.occurred', scope, {
      error: { ...error, severity: 'high', affected_resources: [agent_id, ...tasks] },
      user_id: agent.created_by,
      request_id: last[0]?.request_id ?? null,
    })
    return true
  })
}

/** Why the agent must stop, from its last tasks, newest first; undefined if it need not. */
function verdict(last: readonly FinishedTask[]): string | undefined {
  const failed = (task: FinishedTask): boolean => task.status !== 'completed'
  const misconfigured = last.slice(0, configurationFailures)
  const code = misconfigured[0]?.code
  if (
    misconfigured.length === configurationFailures &&
    misconfigured.every((task) => failed(task) && task.code !== null && configurationCodes.includes(task.code))
  ) {
    return `${configurationFailures} tasks in a row failed because of its configuration (${code}).`
  }
  if (last.length === anyFailures && last.every((task) => failed(task) && task.recent)) {
    return `${anyFailures} tasks in a row failed within ${anyFailures_minutes} minutes.`
  }
  return undefined
}
