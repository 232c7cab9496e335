import { useQueryClient } from '@tanstack/react-query'
import { act } from '../../agents/actions.ts'
import { api } from '../../api/client.ts'
import { ConfirmDialog } from '../../ui/dialog.tsx'
import { tell } from '../../ui/toast.tsx'

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
        const workOff = async (): Promise<void> => {
          for (const { id } of waiting)
            await act(project_id, id, action).catch((error: unknown) => failures.push(error))
        }
        await Promise.all(Array.from({ length: atOnce }, workOff))
        await queries.invalidateQueries({ queryKey: ['project', project_id, 'agents'] })
        if (failures.length > 0) throw failures[0]
        tell(`${agents.length} ${action === 'pause' ? 'paused' : 'resumed'}`)
      }}
    >
      <p>
        {action === 'pause'
          ? 'The step in flight ends and no further one begins. New tasks are accepted and wait.'
          : 'Their waiting and queued tasks go on.'}
      </p>
    </ConfirmDialog>
  )
}
