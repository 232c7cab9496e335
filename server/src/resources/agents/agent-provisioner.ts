import { eventAgent } from '#contract/events/events.ts'
import { Problem } from '#contract/core/problems.ts'
import type { Context } from '../../context.ts'
import { writeAgentLog } from '../../events/agent-log.ts'
import { emit } from '../../events/outbox.ts'
import { startPeriodic } from '../../platform/periodic.ts'
import { readableEnvironment } from './agent-content.ts'
import { scope, settle } from './agent-transitions.ts'
import { failProvisioning, listUnprovisioned, lockAgent, type AgentKey, type AgentRow } from './agents.queries.ts'

/** Maximum number of agents per sweep. */
const batch = 100
/** Interval of the sweep for agents that their process did not provision. */
const sweepInterval_ms = 1000

/** Ends the states `updating` and `creating` in the background (decisions D34, D35). */
export interface AgentProvisioner {
  /** Provisions one agent after the commit of its update. */
  settle(row: AgentRow): void
  /** Stops, and resolves when all started work is done. */
  stop(): Promise<void>
}

/**
 * Provisioning does not contact a model provider. It checks that a worker can decrypt the environment variables,
 * which fails if they were encrypted with another secret key. With `sweeps`, in processes that run tasks, a sweep
 * also handles agents of processes that died, so that no agent stays in `updating`.
 */
export function startAgentProvisioner(context: Context, { sweeps }: { sweeps: boolean }): AgentProvisioner {
  const { sql, log } = context
  const running = new Set<Promise<unknown>>()
  let stopped = false

  const track = (work: Promise<unknown>): void => {
    const tracked = work
      .catch((error: unknown) => {
        if (!(error instanceof Problem)) log.warn({ err: error }, 'an agent could not be provisioned; retrying')
      })
      .finally(() => running.delete(tracked))
    running.add(tracked)
  }
  const sweep = async (): Promise<void> => {
    for (const key of await listUnprovisioned(sql, batch)) await provisionOne(context, key)
  }
  const sweeping = sweeps
    ? startPeriodic(async () => void (running.size === 0 && (await sweep())), {
        every_ms: sweepInterval_ms,
        onError: (error) => log.warn({ err: error }, 'unfinished agents could not be provisioned; retrying'),
      })
    : undefined

  return {
    settle: (row) => void (stopped || track(provisionOne(context, row))),
    async stop() {
      stopped = true
      await sweeping?.stop()
      await Promise.all(running)
    },
  }
}

async function provisionOne(context: Context, key: AgentKey): Promise<void> {
  await context.sql.begin(async (tx) => {
    const row = await lockAgent(tx, key)
    if (row.status !== 'creating' && row.status !== 'updating') return
    const [project] = await tx<{ org_id: string }>`select org_id from project where id = ${row.project_id}`
    const org_id = project!.org_id
    if (readableEnvironment(context.secrets, row)) await settle(context, tx, row, { user_id: row.created_by, org_id })
    else await fail(context, row, org_id, tx)
  })
}

async function fail(context: Context, row: AgentRow, org_id: string, tx: Context['sql']): Promise<void> {
  const message = 'The stored environment variables cannot be read: they were encrypted with another CADRE_SECRET_KEY.'
  const status = await failProvisioning(tx, row.id, row.revision)
  await writeAgentLog(tx, [{ agent_id: row.id, level: 'error', message, context: { from: row.status, to: status } }])
  if (status !== 'error') return
  await context.engine.deferTasks(tx, row.id, 'agent_stopped')
  const failed = { ...row, status }
  const error = { code: 'provisioning_failed', message }
  await emit(tx, 'agent.failed', scope(row, { org_id }), { agent: eventAgent(failed), task: null, error })
  await emit(tx, 'error.occurred', scope(row, { org_id }), {
    error: { ...error, severity: 'high', affected_resources: [row.id] },
    user_id: row.created_by,
    request_id: null,
  })
  context.log.error({ agent_id: row.id }, message)
}
