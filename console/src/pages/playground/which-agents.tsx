import { AgentField } from '../../agents/agent-picker.tsx'
import { Checkbox } from '../../ui/forms/field.tsx'

interface Which {
  project_id: string
  agent_id: string | undefined
  /** The one that answers beside it. */
  other_id: string | undefined
  candidates: readonly { id: string }[]
  isRunning: boolean
  change: (search: Record<string, string | undefined>) => void
}

/** Who is tried: one agent, or two. A conversation is of one agent, so another one begins its own. */
export function WhichAgents({ project_id, agent_id, other_id, candidates, isRunning, change }: Which) {
  return (
    <>
      <AgentField
        project_id={project_id}
        value={agent_id}
        onChange={(agent) => change({ agent, case: undefined, thread: undefined, version: undefined })}
      />
      <Checkbox
        label="Compare with another agent"
        checked={other_id !== undefined}
        disabled={candidates.length < 2 || isRunning}
        title={candidates.length < 2 ? 'There is only one agent' : undefined}
        onChange={(event) =>
          change({
            against: event.target.checked ? candidates.find(({ id }) => id !== agent_id)?.id : undefined,
            against_thread: undefined,
          })
        }
      />
      {other_id !== undefined && (
        <AgentField
          project_id={project_id}
          label="Other agent"
          value={other_id}
          onChange={(against) => change({ against, against_thread: undefined })}
        />
      )}
    </>
  )
}
