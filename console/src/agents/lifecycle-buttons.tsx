import { useMutation, useQueryClient } from '@tanstack/react-query'
import type { AgentAction, AgentState } from '#contract/resources/agent-lifecycle.ts'
import { useDisabledReason } from '../api/disabled-reason.ts'
import { Button } from '../ui/button.tsx'
import { tell, tellFailure } from '../ui/toast.tsx'
import { agentQuery } from './agent-queries.ts'
import { act, actionLabels, actions, reasonAgainst, stateAfter, undoOf } from './actions.ts'

/** What can be done to an agent. The state changes at once, and back again where the service refuses. */
export function LifecycleButtons({
  project_id,
  agent_id,
  status,
}: {
  project_id: string
  agent_id: string
  status: AgentState
}) {
  const queries = useQueryClient()
  const mayNot = useDisabledReason('agents')
  const { queryKey } = agentQuery(project_id, agent_id)
  const run = useMutation({
    mutationFn: (action: AgentAction) => act(project_id, agent_id, action),
    onMutate: async (action) => {
      await queries.cancelQueries({ queryKey })
      const before = queries.getQueryData(queryKey)
      if (before) queries.setQueryData(queryKey, { ...before, agent: { ...before.agent, status: stateAfter(action) } })
      return before
    },
    onError: (error, action, before) => {
      if (before) queries.setQueryData(queryKey, before)
      tellFailure(`${actionLabels[action]} failed`, error)
    },
    onSuccess: (_, action, before) => {
      const back = before && undoOf(action, before.agent.status)
      tell(`The agent is ${stateAfter(action)}`, back && (() => run.mutate(back)))
    },
    onSettled: () => queries.invalidateQueries({ queryKey: ['project', project_id, 'agents'] }),
  })
  return (
    <div role="group" aria-label="State of the agent" className="flex flex-wrap gap-2">
      {actions.map((action) => (
        <Button
          key={action}
          reason={mayNot ?? reasonAgainst(action, status)}
          disabled={run.isPending}
          onClick={() => run.mutate(action)}
        >
          {actionLabels[action]}
        </Button>
      ))}
    </div>
  )
}
