import type { Requirement } from '#contract/core/scopes.ts'
import type { PublishedAgent } from './published.queries.ts'

/** A tool as it is listed, with what it asks of a credential. */
export interface DoorTool {
  name: string
  title?: string
  description: string
  inputSchema: { type: 'object'; [member: string]: unknown }
  outputSchema?: Record<string, unknown>
  annotations: Record<string, unknown>
  scope: Requirement
  /** Of `ask_…`: the agent. */
  agent?: PublishedAgent
}
