import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { Link, useNavigate, useParams } from '@tanstack/react-router'
import type { NewSchedule } from '#sdk/types.ts'
import { useAgentNames } from '../../agents/agent-names.ts'
import { api } from '../../api/client.ts'
import { useProjectId } from '../../api/queries.ts'
import { formatCount, zoneName, plural } from '../../format.ts'
import { paths } from '../../paths.ts'
import { useSearchText } from '../../search-state.ts'
import { Button } from '../../ui/button.tsx'
import { CopyId } from '../../ui/copy.tsx'
import { ConfirmDialog } from '../../ui/confirm-dialog.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { ErrorBox } from '../../ui/error-box.tsx'
import { Facts, Panel } from '../../ui/page.tsx'
import { Skeleton, WhenSettled } from '../../ui/skeleton.tsx'
import { Status } from '../../ui/status.tsx'
import { Time } from '../../ui/time.tsx'
import { tell, tellFailure } from '../../ui/toast.tsx'
import { PageFrame } from '../parts/page-frame.tsx'
import { useDisabledReason } from '../../api/disabled-reason.ts'
import { cronWords } from './cron-description.ts'
import { HistoryKey, HistoryStrip } from './history-strip.tsx'
import { RunTimes } from './run-times.tsx'
import { ScheduleForm } from './schedule-form.tsx'
import { usePreference } from '../../preferences.ts'

/** Tasks in the strip of the history. */
const shownTasks = 40

/** One schedule: when it runs next, and what became of its tasks. */
export default function SchedulePage() {
  const project_id = useProjectId()
  const { schedule_id: id = '' } = useParams({ strict: false })
  const [params, setParams] = useSearchText()
  const [zone] = usePreference('time_zone')
  const navigate = useNavigate()
  const queries = useQueryClient()
  const { data, error, isPending, refetch } = useQuery({
    queryKey: ['project', project_id, 'schedules', id],
    queryFn: () => api.schedules.get(project_id, id),
    refetchInterval: 15_000,
  })
  const history = useQuery({
    queryKey: ['project', project_id, 'tasks', 'schedule', id],
    queryFn: () => api.tasks.list(project_id, { schedule_id: id, limit: shownTasks }).page(),
  })
  const names = useAgentNames(project_id, [data?.agent_id])
  const again = () => queries.invalidateQueries({ queryKey: ['project', project_id, 'schedules'] })
  const close = () => {
    setParams({ panel: undefined })
    save.reset()
  }
  const move = useMutation({
    mutationFn: (to: 'pause' | 'resume') => api.schedules[to](project_id, id),
    onSuccess: (_, to) => {
      tell(`The schedule is ${to === 'pause' ? 'paused' : 'active'}`, () =>
        move.mutate(to === 'pause' ? 'resume' : 'pause'),
      )
      return again()
    },
    onError: (failure) => tellFailure('The schedule was not changed', failure),
  })
  const run = useMutation({
    mutationFn: () => api.schedules.trigger(project_id, id),
    onSuccess: () => {
      tell('A task has started')
      return queries.invalidateQueries({ queryKey: ['project', project_id] })
    },
    onError: (failure) => tellFailure('No task was created', failure),
  })
  const save = useMutation({
    mutationFn: ({ agent_id: _, ...values }: NewSchedule) => api.schedules.update(project_id, id, values),
    onSuccess: () => {
      tell('Saved')
      close()
      return again()
    },
  })
  const remove = async () => {
    await api.schedules.delete(project_id, id)
    tell('The schedule is deleted')
    await navigate(paths.schedules(project_id))
    await queries.invalidateQueries({
      queryKey: ['project', project_id, 'schedules'],
      predicate: ({ queryKey }) => queryKey[3] !== id,
    })
  }
  const refused = useDisabledReason('agents')
  const mayNot = refused ?? (data ? undefined : 'The schedule is not shown yet')
  const tasks = history.data?.items ?? []
  return (
    <PageFrame
      title={data?.name ?? 'Schedule'}
      parent={<Link {...paths.schedules(project_id)}>Schedules</Link>}
      path={`/api/v1/projects/${project_id}/schedules/${id}`}
      missing={{ noun: 'Schedule', error, retry: refetch }}
      actions={
        <>
          <Button kind="primary" reason={mayNot} disabled={run.isPending} onClick={() => run.mutate()}>
            Run now
          </Button>
          <Button
            reason={mayNot}
            disabled={move.isPending}
            onClick={() => move.mutate(data?.status === 'paused' ? 'resume' : 'pause')}
          >
            {data?.status === 'paused' ? 'Resume' : 'Pause'}
          </Button>
        </>
      }
      more={[
        { label: 'Edit', reason: mayNot, onClick: () => setParams({ panel: 'edit' }) },
        { label: 'Delete', reason: mayNot, isDangerous: true, onClick: () => setParams({ panel: 'delete' }) },
      ]}
    >
      {isPending && <Skeleton label="Loading the schedule" />}
      <ErrorBox error={error} retry={() => void refetch()} />
      {data && (
        <WhenSettled>
          <div className="grid grid-cols-[minmax(0,1fr)] items-start gap-5 xl:grid-cols-2">
            <Panel
              title="History"
              className="xl:col-span-2"
              actions={
                <span className="text-sm text-soft">
                  {plural(history.data?.total ?? data.tasks_created, 'task')}
                  {data.skipped > 0 && `, ${formatCount(data.skipped)} skipped`}
                </span>
              }
            >
              <div className="p-4">
                <ErrorBox error={history.error} retry={() => void history.refetch()} />
                {history.data &&
                  (tasks.length === 0 ? (
                    <p className="text-soft">It has not run yet. Run it now to see what the agent makes of it.</p>
                  ) : (
                    <>
                      <HistoryStrip project_id={project_id} tasks={tasks} />
                      <HistoryKey tasks={tasks} />
                    </>
                  ))}
                {data.last_error && (
                  <p className="mt-3 text-warn">
                    Last skipped <Time at={data.last_error.at} />: {data.last_error.message}
                  </p>
                )}
              </div>
            </Panel>
            <Panel title="Next runs" actions={<span className="text-sm text-soft">{zoneName(zone)}</span>}>
              <div className="px-4 py-2">
                {data.next_runs.length > 0 ? (
                  <RunTimes label="Next runs" runs={data.next_runs} time_zone={data.time_zone} />
                ) : (
                  <p className="py-1 text-soft">None while it is paused.</p>
                )}
              </div>
            </Panel>
            <Panel title="Details">
              <div className="p-4">
                <Facts>
                  <dt>State</dt>
                  <dd>
                    <Status state={data.status} />
                  </dd>
                  <dt>Runs</dt>
                  <dd>
                    {cronWords(data.cron) ?? ''} <code className="whitespace-nowrap">{data.cron}</code>
                    <span className="text-soft"> in {data.time_zone}</span>
                  </dd>
                  <dt>Agent</dt>
                  <dd>
                    <Link {...paths.agent(project_id, data.agent_id)}>{names.get(data.agent_id) ?? data.agent_id}</Link>
                  </dd>
                  <dt>Input</dt>
                  <dd className="whitespace-pre-wrap">
                    {typeof data.input === 'string' ? data.input : JSON.stringify(data.input, undefined, 2)}
                  </dd>
                  {data.thread_id !== null && (
                    <>
                      <dt>Thread</dt>
                      <dd>
                        <Link {...paths.thread(project_id, data.thread_id)}>{data.thread_id}</Link>
                      </dd>
                    </>
                  )}
                  <dt>Overlap</dt>
                  <dd>{data.overlap === 'skip' ? 'Skips while an earlier task is open' : 'Queues another task'}</dd>
                  <dt>Missed runs</dt>
                  <dd>{data.catch_up === 'once' ? 'Runs once when the service is back' : 'Waits for the next run'}</dd>
                  <dt>ID</dt>
                  <dd>
                    <CopyId id={id} />
                  </dd>
                </Facts>
              </div>
            </Panel>
            <Dialog
              title="Edit schedule"
              isOpen={params.panel === 'edit'}
              close={close}
              width="max-w-3xl"
              refused={refused}
            >
              <ScheduleForm
                key={data.updated_at}
                project_id={project_id}
                values={data}
                error={save.error}
                isBusy={save.isPending}
                submit={(values) => save.mutate(values)}
              />
            </Dialog>
          </div>
        </WhenSettled>
      )}
      <ConfirmDialog
        title="Delete the schedule"
        action="Delete schedule"
        isOpen={params.panel === 'delete'}
        close={close}
        refused={refused}
        run={remove}
        typed={data?.name}
      >
        <p>It stops running. Its tasks are not deleted.</p>
      </ConfirmDialog>
    </PageFrame>
  )
}
