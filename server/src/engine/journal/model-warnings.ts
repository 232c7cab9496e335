import { jsonb, type Sql } from '../../platform/postgres/database.ts'
import type { TaskChange, CallWarning } from '../task.ts'

type Logs = NonNullable<TaskChange['logs']>

/**
 * Cache of warnings that are already logged, the oldest removed first. It only saves a statement; the table decides.
 */
const known = new Set<string>()
const knownMax = 10_000

/**
 * The log entries for the warnings of these changes. Each is made once per version of an agent, by the first process
 * that stores it.
 */
export async function newWarnings(tx: Sql, changes: readonly TaskChange[]): Promise<Map<TaskChange, Logs>> {
  const wanted = new Map<
    string,
    { change: TaskChange; row: { agent_id: string; version: number; warning: string }; warning: CallWarning }
  >()
  for (const change of changes) {
    for (const warning of change.warnings ?? []) {
      const row = { agent_id: change.task.agent_id, version: change.task.agent_version, warning: warning.message }
      const key = keyOf(row)
      if (!known.has(key) && !wanted.has(key)) wanted.set(key, { change, row, warning })
    }
  }
  const logs = new Map<TaskChange, Logs>()
  if (wanted.size === 0) return logs
  const rows = [...wanted.values()].map(({ row }) => row)
  const added = await tx<{ agent_id: string; version: number; warning: string }>`
    insert into model_warning (agent_id, version, warning)
    select agent_id, version, warning from jsonb_to_recordset(${jsonb(rows)}::jsonb) as w(agent_id text, version int, warning text)
    order by agent_id, version, warning
    on conflict do nothing returning agent_id, version, warning`
  for (const row of added) {
    const { change, warning } = wanted.get(keyOf(row))!
    const { model, feature, message } = warning
    const entry = {
      level: 'warn' as const,
      message,
      context: { model, feature, agent_version: change.task.agent_version },
    }
    logs.set(change, [...(logs.get(change) ?? []), entry])
  }
  tx.afterCommit(() => {
    for (const key of wanted.keys()) known.add(key)
    for (const key of known) {
      if (known.size <= knownMax) break
      known.delete(key)
    }
  })
  return logs
}

/** Whether a change has warnings that may not be logged yet. */
export function mayWarn({ task, warnings = [] }: TaskChange): boolean {
  const { agent_id, agent_version: version } = task
  return warnings.some(({ message: warning }) => !known.has(keyOf({ agent_id, version, warning })))
}

function keyOf({ agent_id, version, warning }: { agent_id: string; version: number; warning: string }): string {
  return `${agent_id} ${version} ${warning}`
}
