import { useQueryClient } from '@tanstack/react-query'
import type { Operations } from '#sdk/types.ts'
import { api } from '../../../api/client.ts'
import { formatCount } from '../../../format.ts'
import { useSearchState } from '../../../search-state.ts'
import { Button } from '../../../ui/button.tsx'
import { CopyId } from '../../../ui/copy.tsx'
import { DataTable, type Column } from '../../../ui/data-table.tsx'
import { ConfirmDialog } from '../../../ui/confirm-dialog.tsx'
import { Panel } from '../../../ui/page.tsx'
import { Status } from '../../../ui/status.tsx'
import { Time } from '../../../ui/time.tsx'
import { tell, tellFailure } from '../../../ui/toast.tsx'

type Worker = NonNullable<Operations['getSystem']['result']['installation']>['workers'][number]

/** Every process of the service: what it works on, and whether it takes more. */
export function Workers({ workers }: { workers: readonly Worker[] }) {
  const queries = useQueryClient()
  const [{ drain }, change] = useSearchState<{ drain?: string | undefined }>()
  const refresh = (): Promise<void> => queries.invalidateQueries({ queryKey: ['system'] })
  const resume = async ({ id }: Worker): Promise<void> => {
    try {
      await api.service.resumeWorker(id)
      tell('The worker takes tasks again')
      await refresh()
    } catch (failure) {
      tellFailure('The worker was not resumed', failure)
    }
  }
  // Of those that remain, one has to take what is queued.
  const others = workers.filter((worker) => worker.id !== drain && takesTasks(worker))
  const close = (): void => change({ drain: undefined })
  return (
    <Panel title="Workers">
      <DataTable
        label="Workers"
        columns={[
          ...columns,
          actions(
            (worker) => change({ drain: worker.id }),
            (worker) => void resume(worker),
          ),
        ]}
        rows={workers}
        keyOf={({ id }) => id}
      />
      <ConfirmDialog
        isOpen={drain !== undefined}
        close={close}
        kind="primary"
        title="Drain the worker"
        action="Drain"
        run={async () => {
          await api.service.drainWorker(drain!)
          await refresh()
        }}
      >
        <p>
          It takes no more tasks and finishes those that it runs. It still answers requests. Once it is drained, its
          process can be stopped without interrupting a task.
        </p>
        {others.length === 0 && <p>No other worker takes tasks: queued tasks wait until one does.</p>}
      </ConfirmDialog>
    </Panel>
  )
}

const takesTasks = ({ is_alive, slots, draining_since }: Worker): boolean =>
  is_alive && slots > 0 && draining_since === null

function State({ worker }: { worker: Worker }) {
  const { is_alive, slots, draining_since, drained_at } = worker
  if (!is_alive) return <Status state="error" label="silent" />
  if (drained_at !== null) return <Status state="stopped" label="drained" />
  if (draining_since !== null) return <Status state="canceling" label="draining" />
  return <Status state={slots === 0 ? 'idle' : 'active'} label={slots === 0 ? 'answers requests' : 'takes tasks'} />
}

const columns: Column<Worker>[] = [
  { id: 'id', header: 'Worker', cell: ({ id }) => <CopyId id={id} short /> },
  { id: 'state', header: 'State', cell: (worker) => <State worker={worker} /> },
  {
    id: 'tasks',
    header: 'Running tasks',
    align: 'right',
    cell: ({ running_tasks, slots }) =>
      slots === 0 ? <span className="text-soft">–</span> : `${formatCount(running_tasks)} of ${formatCount(slots)}`,
  },
  { id: 'started', header: 'Started', cell: ({ started_at }) => <Time at={started_at} /> },
  { id: 'seen', header: 'Last seen', isExtra: true, cell: ({ seen_at }) => <Time at={seen_at} /> },
]

const actions = (drain: (worker: Worker) => void, resume: (worker: Worker) => void): Column<Worker> => ({
  id: 'actions',
  header: 'Actions',
  cell: (worker) =>
    worker.draining_since === null ? (
      <Button size="small" reason={undrainable(worker)} onClick={() => drain(worker)}>
        Drain
      </Button>
    ) : (
      <Button size="small" onClick={() => resume(worker)}>
        Resume
      </Button>
    ),
})

/** Why a worker cannot be drained. */
function undrainable({ is_alive, slots }: Worker): string | undefined {
  if (!is_alive) return 'The worker is silent'
  return slots === 0 ? 'This process takes no tasks' : undefined
}
