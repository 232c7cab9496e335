import type { AgentLogEntry, LogLevel } from '../../events/agent-log.ts'
import type { Sql } from '../../platform/database.ts'

/** An entry as it is answered (spec 2.7). */
export interface LogRow extends Pick<AgentLogEntry, 'level' | 'message'> {
  timestamp: string
  context: Record<string, unknown>
}

export interface LogFilter {
  agent_id: string
  level?: LogLevel | undefined
  /** What the message contains, in any case. */
  search?: string | undefined
  task_id?: string | undefined
  /** Inclusive. */
  start_time?: string | undefined
  /** Exclusive. */
  end_time?: string | undefined
  limit: number
  offset: number
}

/** A page of an agent's log, the newest first, and how many entries match (decision D48). */
export async function listLogs(sql: Sql, filter: LogFilter): Promise<{ logs: LogRow[]; total: number }> {
  const { fragment } = sql
  const conditions = [fragment`agent_id = ${filter.agent_id}`]
  if (filter.level) conditions.push(fragment`level = ${filter.level}`)
  if (filter.search !== undefined)
    conditions.push(fragment`position(lower(${filter.search}::text) in lower(message)) > 0`)
  if (filter.task_id !== undefined) conditions.push(fragment`task_id = ${filter.task_id}`)
  if (filter.start_time) conditions.push(fragment`timestamp >= ${filter.start_time}::timestamptz`)
  if (filter.end_time) conditions.push(fragment`timestamp < ${filter.end_time}::timestamptz`)
  const where = conditions.reduce((all, one) => fragment`${all} and ${one}`)
  const [count] = await sql.run<{ total: number }>(fragment`select count(*) as total from agent_log where ${where}`)
  const logs = await sql.run<LogRow>(fragment`
    select timestamp, level, message, context from agent_log where ${where}
    order by timestamp desc, id desc limit ${filter.limit} offset ${filter.offset}`)
  return { logs, total: count?.total ?? 0 }
}
