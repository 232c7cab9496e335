import type { AgentWithStats } from '#sdk/types.ts'

/** What every part of an agent's page is given. */
export interface TabProps {
  project_id: string
  agent: AgentWithStats
}
