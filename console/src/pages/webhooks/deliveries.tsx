import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { api } from '../../api/client.ts'
import { paths } from '../../paths.ts'
import { EmptyState } from '../../ui/empty-state.tsx'
import { ErrorBox } from '../../ui/error-box.tsx'
import { FilterSelect } from '../../ui/forms/field.tsx'
import { Pager } from '../../ui/pager.tsx'
import { Skeleton } from '../../ui/skeleton.tsx'
import { Badge, Status } from '../../ui/status.tsx'
import { Time } from '../../ui/time.tsx'
import { NextAttempt } from './next-attempt.tsx'
import { useSearchText } from '../../search-state.ts'
import { card, DataTable, type Column } from '../../ui/data-table.tsx'
import { Options } from '../parts/options.tsx'
import { eventNames, taskEventNames, testEventName } from '#contract/events/events.ts'
import type { Delivery } from '#sdk/types.ts'

const pageSize = 20
const states = { '': 'Any state', delivered: 'Delivered', failed: 'Failed', pending: 'Pending' }
const days = { '': 'Any time', '1': 'Last 24 hours', '7': 'Last 7 days' }

/** What a webhook was sent, the newest first. */
export function Deliveries({ webhook_id }: { webhook_id: string }) {
  const [params, setParams] = useSearchText()
  const page = Number(params.page ?? 1)
  const status =
    params.status && Object.hasOwn(states, params.status) ? (params.status as Delivery['status']) : undefined
  const event = params.event as Delivery['event'] | undefined
  const filter = { page, limit: pageSize, ...(status ? { status } : {}), ...(event ? { event } : {}) }
  const deliveries = useQuery({
    queryKey: ['webhooks', webhook_id, 'deliveries', filter, params.days],
    queryFn: () => {
      const created_after = params.days && new Date(Date.now() - Number(params.days) * 86_400_000).toISOString()
      return api.webhooks
        .listDeliveries(webhook_id, { ...filter, ...(created_after ? { created_after } : {}) })
        .page({ page })
    },
    // The state of a pending delivery changes without a reload.
    refetchInterval: ({ state }) => (state.data?.items.some((one) => one.status === 'pending') ? 2000 : 15_000),
  })
  const items = deliveries.data?.items ?? []
  const isFiltered = status !== undefined || event !== undefined || params.days !== undefined
  const columns: Column<Delivery>[] = [
    {
      id: 'event',
      header: 'Event',
      cell: (one) => (
        <span className="inline-flex flex-wrap items-center gap-1.5">
          <Link {...paths.delivery(webhook_id, one.id)}>{one.event}</Link>
          {one.is_test && <Badge>test</Badge>}
          {one.is_redelivery && <Badge>again</Badge>}
        </span>
      ),
    },
    { id: 'state', header: 'State', cell: (one) => <Status state={one.status} /> },
    { id: 'answer', header: 'Response', cell: (one) => one.last_response_status ?? 'none' },
    { id: 'attempts', header: 'Attempts', cell: (one) => one.attempts },
    { id: 'made', header: 'Created', cell: (one) => <Time at={one.created_at} /> },
    { id: 'next_attempt', header: 'Next attempt', cell: (one) => <NextAttempt at={one.next_attempt_at} /> },
  ]
  return (
    <section aria-labelledby="deliveries">
      <div className="mb-3 flex flex-wrap items-center justify-between gap-2">
        <h2 id="deliveries">Deliveries</h2>
        <div className="flex flex-wrap gap-2">
          <FilterSelect
            label="State of deliveries"
            value={status ?? ''}
            onChange={(change) => setParams({ status: change.target.value || undefined, page: undefined })}
          >
            <Options of={states} />
          </FilterSelect>
          <FilterSelect
            label="Event"
            value={event ?? ''}
            onChange={(change) => setParams({ event: change.target.value || undefined, page: undefined })}
          >
            <Options of={eventOptions} />
          </FilterSelect>
          <FilterSelect
            label="Time"
            value={params.days ?? ''}
            onChange={(change) => setParams({ days: change.target.value || undefined, page: undefined })}
          >
            <Options of={days} />
          </FilterSelect>
        </div>
      </div>
      {deliveries.isPending && <Skeleton label="Loading deliveries" />}
      <ErrorBox error={deliveries.error} retry={() => void deliveries.refetch()} />
      {deliveries.data && items.length === 0 && !isFiltered && (
        <EmptyState title="No deliveries yet">
          <p>
            Deliveries appear here with every attempt: what was sent, what was answered, and when it is tried again.
            “Send test event” makes the first one.
          </p>
        </EmptyState>
      )}
      {deliveries.data && items.length === 0 && isFiltered && <p className="py-4 text-soft">No matching deliveries.</p>}
      {deliveries.data && deliveries.data.total > 0 && (
        <div className={card}>
          {items.length > 0 && <DataTable label="Deliveries" columns={columns} rows={items} keyOf={({ id }) => id} />}
          <Pager
            noun="deliveries"
            offset={(page - 1) * pageSize}
            limit={pageSize}
            total={deliveries.data.total}
            go={(offset) => setParams({ page: offset ? String(offset / pageSize + 1) : undefined })}
          />
        </div>
      )}
    </section>
  )
}

const eventOptions: Record<string, string> = {
  '': 'Any event',
  ...Object.fromEntries([testEventName, ...eventNames, ...taskEventNames].map((name) => [name, name])),
}
