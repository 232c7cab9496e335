import { keepPreviousData, useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import type { TriggerDelivery } from '#sdk/types.ts'
import { api } from '../../api/client.ts'
import { formatSize } from '../../format.ts'
import { paths } from '../../paths.ts'
import { useSearchText } from '../../search-state.ts'
import { Button } from '../../ui/button.tsx'
import { CodeBlock } from '../../ui/copy.tsx'
import type { Column } from '../../ui/data-table.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { EmptyState } from '../../ui/empty-state.tsx'
import { ErrorBox } from '../../ui/error-box.tsx'
import { FilterSelect } from '../../ui/forms/field.tsx'
import { PagedTable } from '../../ui/paged-table.tsx'
import { Skeleton } from '../../ui/skeleton.tsx'
import { Badge, Status } from '../../ui/status.tsx'
import { Time } from '../../ui/time.tsx'
import { tell, tellFailure } from '../../ui/toast.tsx'
import { Options } from '../parts/options.tsx'

const pageSize = 20
const states = { '': 'Any state', accepted: 'Accepted', filtered: 'Filtered' }
const reasons: Record<NonNullable<TriggerDelivery['reason']>, string> = {
  filter: 'by the filter',
  paused: 'the trigger was paused',
  ping: 'the sender tried the address',
  own_message: 'a message of the app itself',
  automatic_reply: 'an automatic reply',
}

/** What came to a trigger and was genuine, the newest first; each can be looked at and replayed. */
export function TriggerDeliveries({
  project_id,
  trigger_id,
  mayNot,
}: {
  project_id: string
  trigger_id: string
  mayNot: string | undefined
}) {
  const [params, setParams] = useSearchText()
  const offset = Number(params.offset ?? 0)
  const status = (['accepted', 'filtered'] as const).find((one) => one === params.status)
  const query = { limit: pageSize, offset, ...(status ? { status } : {}) }
  const queries = useQueryClient()
  const deliveries = useQuery({
    queryKey: ['project', project_id, 'triggers', trigger_id, 'deliveries', query],
    queryFn: () => api.triggers.listDeliveries(project_id, trigger_id, query).page(query),
    placeholderData: keepPreviousData,
    refetchInterval: 5000,
  })
  const replay = useMutation({
    mutationFn: (id: string) => api.triggers.replay(project_id, trigger_id, id),
    onSuccess: ({ status: became }) => {
      tell(became === 'accepted' ? 'Replayed: a task has it' : 'Replayed, and filtered again')
      return queries.invalidateQueries({ queryKey: ['project', project_id, 'triggers', trigger_id] })
    },
    onError: (failure) => tellFailure('The delivery was not replayed', failure),
  })
  const columns: Column<TriggerDelivery>[] = [
    { id: 'came', header: 'Received', cell: ({ created_at }) => <Time at={created_at} /> },
    {
      id: 'state',
      header: 'State',
      cell: ({ status: state, reason, is_test, replay_of }) => (
        <span className="inline-flex flex-wrap items-center gap-1.5">
          <Status state={state} tone={state === 'accepted' ? 'good' : 'quiet'} />
          {reason !== null && <span className="text-sm text-soft">{reasons[reason]}</span>}
          {is_test && <Badge>test</Badge>}
          {replay_of !== null && <Badge>replay</Badge>}
        </span>
      ),
    },
    {
      id: 'task',
      header: 'Task',
      cell: ({ task_id }) =>
        task_id === null ? (
          <span className="text-soft">–</span>
        ) : (
          <Link {...paths.task(project_id, task_id)}>Open</Link>
        ),
    },
    { id: 'again', header: 'Duplicates', align: 'right', cell: ({ duplicates }) => duplicates },
    { id: 'bytes', header: 'Size', align: 'right', cell: ({ bytes }) => formatSize(bytes) },
    {
      id: 'actions',
      header: 'Actions',
      cell: ({ id, created_at }) => (
        <span className="inline-flex gap-1.5">
          <Button
            size="small"
            aria-label={`Show the delivery of ${created_at}`}
            onClick={() => setParams({ shown: id })}
          >
            Show
          </Button>
          <Button
            size="small"
            aria-label={`Replay the delivery of ${created_at}`}
            reason={mayNot}
            disabled={replay.isPending}
            onClick={() => replay.mutate(id)}
          >
            Replay
          </Button>
        </span>
      ),
    },
  ]
  return (
    <section aria-labelledby="deliveries">
      <div className="mb-3 flex flex-wrap items-center justify-between gap-2">
        <h2 id="deliveries">Deliveries</h2>
        <FilterSelect
          label="State of deliveries"
          value={status ?? ''}
          onChange={(change) => setParams({ status: change.target.value || undefined, offset: undefined })}
        >
          <Options of={states} />
        </FilterSelect>
      </div>
      <PagedTable
        label="Deliveries"
        noun="deliveries"
        query={deliveries}
        columns={columns}
        keyOf={({ id }) => id}
        offset={offset}
        limit={pageSize}
        go={(to) => setParams({ offset: to ? String(to) : undefined })}
        empty={
          status === undefined ? (
            <EmptyState title="No deliveries yet">
              <p>Deliveries and their results appear here for 30 days.</p>
            </EmptyState>
          ) : (
            <p className="py-4 text-soft">No matching deliveries.</p>
          )
        }
      />
      <Dialog
        title="Delivery"
        isOpen={params.shown !== undefined}
        close={() => setParams({ shown: undefined })}
        width="max-w-3xl"
      >
        {params.shown !== undefined && <Shown project_id={project_id} trigger_id={trigger_id} id={params.shown} />}
      </Dialog>
    </section>
  )
}

/** What was sent, without what proves it. */
function Shown({ project_id, trigger_id, id }: { project_id: string; trigger_id: string; id: string }) {
  const { data, error } = useQuery({
    queryKey: ['project', project_id, 'triggers', trigger_id, 'deliveries', id],
    queryFn: () => api.triggers.getDelivery(project_id, trigger_id, id),
  })
  if (!data) return error ? <ErrorBox error={error} /> : <Skeleton label="Loading the delivery" />
  const headers = Object.entries(data.headers).map(([name, value]) => `${name}: ${value}`)
  return (
    <div className="space-y-3">
      <div>
        <h3 className="mb-1 font-medium">Headers</h3>
        <CodeBlock text={headers.join('\n')} label="Copy the headers" />
      </div>
      <div>
        <h3 className="mb-1 font-medium">Body</h3>
        <CodeBlock text={data.payload} label="Copy the body" />
      </div>
    </div>
  )
}
