import type { Requirement } from '#contract/core/scopes.ts'
import type { PublishedAgent } from './published.queries.ts'

/** A listed tool with the scope that it requires. */
export interface DoorTool {
  name: string
  title?: string
  description: string
  inputSchema: { type: 'object'; [member: string]: unknown }
  outputSchema?: Record<string, unknown>
  annotations: Record<string, unknown>
  scope: Requirement
  /** For `ask_…`: the agent. */
  agent?: PublishedAgent
}
