import { agentActions, allowedActions, type AgentAction, type AgentState } from '#contract/resources/agent-lifecycle.ts'
import { eventAgent } from '#contract/events/events.ts'
import { Problem } from '#contract/core/problems.ts'
import type { Context } from '../../context.ts'
import { writeAgentLog, type AgentLogEntry } from '../../events/agent-log.ts'
import { emit, emitAll, type NewEvent } from '../../events/outbox.ts'
import type { Sql } from '../../platform/postgres/database.ts'
import { lockAgent, moveAgent, settleAgent, type AgentKey, type AgentRow } from './agents.queries.ts'

/** Who requests a transition, for its log entry and events. */
export interface Requester {
  user_id: string
  org_id: string
  subject: string
  request_id: string
}

/**
 * Applies an action to an agent in the caller's transaction: ends `creating` or `updating` first, then changes the
 * state if allowed, with log, events and the effects on its tasks (decisions D33, D45). An agent that already has the
 * target state is returned unchanged. `by` is the request of the caller if it differs from the action.
 */
export async function transition(
  context: Context,
  tx: Sql,
  row: AgentRow,
  action: AgentAction,
  requester: Requester,
  by?: 'launch',
): Promise<AgentRow> {
  const settled = await settle(context, tx, row, requester)
  const { to } = agentActions[action]
  const launches = action === 'start' || action === 'restart' ? (by ?? action) : undefined
  const moved = await moveAgent(tx, row.id, action, launches ? requester.subject : null)
  if (!moved) {
    if (settled.status === to) return settled
    throw new Problem(
      'resource_conflict',
      {
        resource_type: 'agent',
        resource_id: row.id,
        conflicting_field: 'status',
        conflicting_value: settled.status,
        allowed: allowedActions(settled.status),
      },
      { message: `Cannot ${action} an agent that is ${settled.status}.` },
    )
  }
  await logMove(tx, moved, settled.status, requester, by ?? action)

  const restarts = action === 'restart' && settled.status === 'running'
  if (action === 'stop' || restarts) {
    await emit(tx, 'agent.stopped', scope(moved, requester), {
      agent: eventAgent({ ...moved, status: 'stopped' }),
      reason: restarts ? 'restart' : 'requested',
      user_id: requester.user_id,
    })
  }
  if (launches)
    await emit(tx, 'agent.launched', scope(moved, requester), {
      agent: eventAgent(moved),
      trigger: launches,
      user_id: requester.user_id,
    })

  if (action === 'pause') await context.engine.deferTasks(tx, row.id, 'agent_paused')
  if (action === 'stop' || action === 'restart') await context.engine.deferTasks(tx, row.id, 'agent_stopped')
  if (launches) await context.engine.dispatchDeferred(tx, row.id)
  return moved
}

/**
 * Ends `creating` or `updating` of a locked agent, with the log entry and event of a launch; otherwise does nothing.
 */
export async function settle(
  context: Context,
  tx: Sql,
  row: AgentRow,
  requester: Pick<Requester, 'user_id' | 'org_id'>,
): Promise<AgentRow> {
  if (row.status !== 'creating' && row.status !== 'updating') return row
  const settled = await settleAgent(tx, row.id, row.revision)
  if (!settled) return lockAgent(tx, row)
  await logMove(tx, settled, row.status, requester, row.status === 'creating' ? 'create' : 'update')
  if (settled.status === 'running') {
    if (row.launch_trigger) {
      await emitAll(tx, [launchedEvent(settled, requester.org_id, row.launch_trigger)])
    }
    await context.engine.dispatchDeferred(tx, row.id)
  }
  return settled
}

/** Writes an `info` entry for a change of state (decision D48). */
export async function logMove(
  tx: Sql,
  row: AgentRow,
  from: AgentState | null,
  requester: Partial<Requester>,
  trigger: string,
): Promise<void> {
  await writeAgentLog(tx, [moveEntry(row, from, requester, trigger)])
}

/** An `info` entry for a change of state (decision D48). */
export function moveEntry(
  row: Pick<AgentRow, 'id' | 'status'>,
  from: AgentState | null,
  requester: Partial<Requester>,
  trigger: string,
): AgentLogEntry {
  return {
    agent_id: row.id,
    level: 'info',
    message: from === null ? `Agent ${row.status}` : `Agent ${from} → ${row.status}`,
    context: {
      from,
      to: row.status,
      trigger,
      ...(requester.user_id ? { user_id: requester.user_id } : {}),
      ...(requester.request_id ? { request_id: requester.request_id } : {}),
    },
  }
}

/** The event of a new agent that started running. */
export function launchedEvent(
  row: AgentKey & Pick<AgentRow, 'name' | 'status' | 'created_by'>,
  org_id: string,
  trigger: 'create' | 'launch',
): NewEvent<'agent.launched'> {
  const data = { agent: eventAgent(row), trigger, user_id: row.created_by }
  return { type: 'agent.launched', scope: scope(row, { org_id }), data }
}

export function scope(row: AgentKey, requester: Pick<Requester, 'org_id'>) {
  return { org_id: requester.org_id, project_id: row.project_id, agent_id: row.id }
}
