import type { Operations } from '#sdk/contract.ts'

export type Task = Operations['getTask']['result']
export type TaskStatus = Task['status']
export type Step = Operations['listTaskSteps']['result']['steps'][number]
export type TaskEvent = Operations['listTaskEvents']['result']['events'][number]
export type Approval = Operations['listApprovals']['result']['approvals'][number]
/** A call of a tool on your side. */
export type ToolCall = Operations['listToolCalls']['result']['tool_calls'][number]
/** A line of a log; of a project's, with the agent that wrote it. */
export type LogLine = Operations['getAgentLogs']['result']['logs'][number] & { agent_id?: string }

/** What a call of a tool is stored with. */
export interface ToolInput {
  arguments?: unknown
  tool_call_id?: string
  approval_id?: string
  safety?: string
}
export interface ModelOutput {
  text?: string
  message_id?: string
  tool_calls?: { id: string; name: string; arguments: unknown }[]
  finish_reason?: string
  /** A model's summary of its reasoning. */
  reasoning_summary?: string
}
/** What a compaction is stored with. */
export interface CompactionOutput {
  summary?: string
  /** The steps before this one are what the summary stands for; 0: what was said in the thread before the task. */
  before_step?: number
}
