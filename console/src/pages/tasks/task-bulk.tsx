import { useQueryClient } from '@tanstack/react-query'
import { Ban, Columns2, RotateCcw } from 'lucide-react'
import { useState } from 'react'
import { APIError } from '#sdk/errors.ts'
import { api } from '../../api/client.ts'
import { useDisabledReason } from '../../api/disabled-reason.ts'
import { paths } from '../../paths.ts'
import { Button, ButtonLink } from '../../ui/button.tsx'
import { ConfirmDialog } from '../../ui/confirm-dialog.tsx'
import { Checkbox } from '../../ui/forms/field.tsx'
import type { Task } from '../../task-parts/types.ts'
import { plural } from '../../format.ts'

/** What became of a task that was acted on together with others. */
export type Outcome = { isDone: boolean; text: string; link?: string }

/** Tasks that are chosen, what is done to all of them, and what became of each. */
export function useTaskBulk(project: string, tasks: readonly Task[]) {
  const queries = useQueryClient()
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set())
  const [outcomes, setOutcomes] = useState<ReadonlyMap<string, Outcome>>(new Map())
  const [busy, setBusy] = useState<string>()
  const chosen = tasks.filter(({ id }) => selected.has(id))

  async function actOnAll(name: string, work: (task: Task) => Promise<Outcome>): Promise<void> {
    setBusy(name)
    setOutcomes(new Map())
    for (const task of chosen) {
      const outcome = await work(task).catch((error: unknown) => ({
        isDone: false,
        text: error instanceof APIError ? `${error.message} (${error.code})` : String(error),
      }))
      setOutcomes((before) => new Map(before).set(task.id, outcome))
    }
    setBusy(undefined)
    setSelected(new Set())
    await queries.invalidateQueries({ queryKey: ['project', project, 'tasks'] })
  }
  return {
    selected,
    chosen,
    outcomes,
    busy,
    choose: (ids: readonly string[]) => setSelected(new Set(ids)),
    toggle: (id: string) =>
      setSelected((before) => {
        const next = new Set(before)
        if (!next.delete(id)) next.add(id)
        return next
      }),
    cancel: () =>
      actOnAll('Canceling…', async ({ id }) => {
        const { status } = await api.tasks.cancel(project, id, {})
        return { isDone: true, text: status === 'canceled' ? 'Canceled' : 'Canceling' }
      }),
    retry: () =>
      actOnAll('Retrying…', async ({ id }) => {
        const made = await api.tasks.retry(project, id, {})
        return { isDone: true, text: 'Retried as', link: made.id }
      }),
  }
}

export type TaskBulk = ReturnType<typeof useTaskBulk>

/** Chooses tasks, and cancels or retries those. */
export function TaskBulkBar({ project, bulk, tasks }: { project: string; bulk: TaskBulk; tasks: readonly Task[] }) {
  const { chosen, outcomes, busy } = bulk
  const [isAsking, setAsking] = useState(false)
  const mayNot = useDisabledReason('tasks')
  const running = chosen.filter(({ finished_at }) => finished_at === null).length
  const reason = (isOpenWanted: boolean): string | undefined => {
    if (busy !== undefined) return 'In progress'
    if (chosen.length === 0) return 'Select tasks first.'
    if (chosen.some(({ finished_at }) => (finished_at === null) === isOpenWanted)) return undefined
    return isOpenWanted ? "Tasks that have ended can't be canceled." : "Tasks that have not ended can't be retried."
  }
  return (
    // Stays in sight of a user who chooses tasks further down.
    <div
      className={`mb-3 flex flex-wrap items-center gap-2 ${chosen.length > 0 ? 'sticky top-12 z-20 bg-page py-1.5' : ''}`}
    >
      <Checkbox
        label={chosen.length > 0 ? `${chosen.length} selected` : 'Select all on this page'}
        className="pr-2"
        checked={tasks.length > 0 && chosen.length === tasks.length}
        onChange={({ target }) => bulk.choose(target.checked ? tasks.map(({ id }) => id) : [])}
      />
      <Button kind="danger" reason={mayNot ?? reason(true)} onClick={() => setAsking(true)}>
        <Ban size={14} aria-hidden /> Cancel
      </Button>
      <Button reason={mayNot ?? reason(false)} onClick={() => void bulk.retry()}>
        <RotateCcw size={14} aria-hidden /> Retry
      </Button>
      {chosen.length === 2 && (
        <ButtonLink {...paths.compareTasks(project, { left: chosen[0]!.id, right: chosen[1]!.id })}>
          <Columns2 size={14} aria-hidden /> Compare
        </ButtonLink>
      )}
      <ConfirmDialog
        isOpen={isAsking}
        close={() => setAsking(false)}
        title={`Cancel ${plural(running, 'task')}`}
        action={running === 1 ? 'Cancel task' : 'Cancel tasks'}
        dismiss={running === 1 ? 'Keep it running' : 'Keep them running'}
        run={async () => void bulk.cancel()}
      >
        <p>They stop where they are. This cannot be undone, but a canceled task can be retried.</p>
      </ConfirmDialog>
      <span role="status" className="text-sm text-soft">
        {busy ??
          (outcomes.size > 0 &&
            `${[...outcomes.values()].filter(({ isDone }) => isDone).length} of ${outcomes.size} done`)}
      </span>
    </div>
  )
}
