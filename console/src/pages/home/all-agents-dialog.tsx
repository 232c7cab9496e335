import { useQueryClient } from '@tanstack/react-query'
import { act, type AgentStep } from '../../agents/actions.ts'
import { useTellWithUndo } from '../../agents/use-undo-agents.ts'
import { api } from '../../api/client.ts'
import { ConfirmDialog } from '../../ui/confirm-dialog.tsx'
import { plural } from '../../format.ts'

/** Requests at a time. */
const atOnce = 4

/** Asks, and then pauses every agent that runs, or lets every paused one run. */
export function AllAgentsDialog({
  project_id,
  action,
  close,
}: {
  project_id: string
  action: 'pause' | 'start'
  close: () => void
}) {
  const queries = useQueryClient()
  const tellWithUndo = useTellWithUndo(project_id)
  const status = action === 'pause' ? 'running' : 'paused'
  return (
    <ConfirmDialog
      isOpen
      close={close}
      kind={action === 'pause' ? 'danger' : 'primary'}
      title={action === 'pause' ? 'Pause every running agent' : 'Resume every paused agent'}
      action={action === 'pause' ? 'Pause all' : 'Resume all'}
      run={async () => {
        const agents = await api.agents.list(project_id, { status, limit: 100, sort: 'created_at' }).toArray()
        const waiting = agents.values()
        const failures: unknown[] = []
        const back: AgentStep[] = []
        const workOff = async (): Promise<void> => {
          for (const { id } of waiting)
            await act(project_id, id, action).then(
              () => back.push({ agent_id: id, action: action === 'pause' ? 'start' : 'pause' }),
              (error: unknown) => failures.push(error),
            )
        }
        await Promise.all(Array.from({ length: atOnce }, workOff))
        await queries.invalidateQueries({ queryKey: ['project', project_id, 'agents'] })
        if (back.length > 0)
          tellWithUndo(`${plural(back.length, 'agent')} ${action === 'pause' ? 'paused' : 'resumed'}`, back)
        if (failures.length > 0) throw failures[0]
      }}
    >
      <p>
        {action === 'pause'
          ? 'Running steps finish, and no new ones start. New tasks wait in the queue.'
          : 'Their waiting and queued tasks continue.'}
      </p>
    </ConfirmDialog>
  )
}
