import { useQueryClient } from '@tanstack/react-query'
import { tell, tellFailure } from '../ui/toast.tsx'
import { actOnEach, type AgentStep } from './actions.ts'

/** Says what was done to agents, with an Undo that takes it back by `steps`; without steps there is none. */
export function useTellWithUndo(project_id: string): (title: string, steps: readonly AgentStep[]) => void {
  const queries = useQueryClient()
  const undo = async (steps: readonly AgentStep[]): Promise<void> => {
    const failures = await actOnEach(project_id, steps)
    await queries.invalidateQueries({ queryKey: ['project', project_id, 'agents'] })
    if (failures.length > 0) tellFailure(`${failures.length} of ${steps.length} could not be undone`, failures[0])
    else tell('Undone')
  }
  return (title, steps) => tell(title, steps.length > 0 ? () => void undo(steps) : undefined)
}
