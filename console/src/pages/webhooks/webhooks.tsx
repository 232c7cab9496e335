import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { Link, useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { api } from '../../api/client.ts'
import { formatShare } from '../../format.ts'
import { paths } from '../../paths.ts'
import { Button } from '../../ui/button.tsx'
import { CopyId } from '../../ui/copy.tsx'
import { curlOf } from '../../ui/copy-as-curl.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { EmptyState } from '../../ui/empty-state.tsx'
import { ErrorBox } from '../../ui/error-box.tsx'
import { FilterSelect, SearchInput } from '../../ui/forms/field.tsx'
import { Pager } from '../../ui/pager.tsx'
import { Skeleton } from '../../ui/skeleton.tsx'
import { Time } from '../../ui/time.tsx'
import { tell, tellFailure } from '../../ui/toast.tsx'
import { useSearchText } from '../../search-state.ts'
import { card, DataTable, type Column } from '../../ui/data-table.tsx'
import { Options } from '../parts/options.tsx'
import { useDisabledReason } from '../../api/disabled-reason.ts'
import { PageFrame } from '../parts/page-frame.tsx'
import type { Operations } from '#sdk/types.ts'
import { Reveal } from '../settings/reveal.tsx'
import { newSecret, WebhookForm, type WebhookValues } from './webhook-form.tsx'
import { WebhookState } from './webhook-state.tsx'

type Webhook = Operations['listWebhooks']['result']['webhooks'][number]
const pageSize = 20

/** Addresses that get events, and their last results. */
export default function Webhooks() {
  const [params, setParams] = useSearchText()
  const page = Number(params.page ?? 1)
  const status = (['active', 'disabled'] as const).find((one) => one === params.status)
  const search = params.search ?? ''
  const query = { page, limit: pageSize, ...(status ? { status } : {}), ...(search ? { search } : {}) }
  const webhooks = useQuery({
    queryKey: ['webhooks', query],
    queryFn: () => api.webhooks.list(query).page({ page }),
    refetchInterval: 15_000,
  })
  const queries = useQueryClient()
  const navigate = useNavigate()
  const [made, setMade] = useState<{ id: string; secret: string }>()
  const create = useMutation({
    mutationFn: async (values: WebhookValues) => {
      const secret = newSecret()
      const { id } = await api.webhooks.create({ ...values, secret })
      return { id, secret }
    },
    // The answer holds the secret: nothing keeps it but what shows it.
    gcTime: 0,
    onSuccess: (answer) => {
      setMade(answer)
      close()
      return queries.invalidateQueries({ queryKey: ['webhooks'] })
    },
  })
  const test = useMutation({
    mutationFn: (id: string) => api.webhooks.test(id, {}),
    onSuccess: (delivery, id) => navigate(paths.delivery(id, delivery.id)),
    onError: (failure) => tellFailure('The test event was not sent', failure),
  })
  const close = () => {
    setParams({ panel: undefined })
    create.reset()
  }
  const isFiltered = status !== undefined || search !== ''
  const mayNot = useDisabledReason('projects')
  const isEmpty = webhooks.data?.total === 0 && !isFiltered
  const add = (label: string) => (
    <Button kind="primary" reason={mayNot} onClick={() => setParams({ panel: 'new' })}>
      {label}
    </Button>
  )
  return (
    <PageFrame
      title="Webhooks"
      lead="Addresses that get events of all projects of this organization: signed, and retried until they answer."
      path="/api/v1/webhooks"
      query={query}
      actions={isEmpty ? undefined : add('New webhook')}
    >
      {!isEmpty && (
        <div className="mb-3 flex flex-wrap gap-2">
          <SearchInput
            label="Search addresses"
            value={search}
            onChange={(event) =>
              setParams({ search: event.target.value || undefined, page: undefined }, { replace: true })
            }
          />
          <FilterSelect
            label="State"
            value={status ?? ''}
            onChange={(event) => setParams({ status: event.target.value || undefined, page: undefined })}
          >
            <Options of={{ '': 'Any state', active: 'Active', disabled: 'Disabled' }} />
          </FilterSelect>
        </div>
      )}
      {webhooks.isPending && <Skeleton label="Loading webhooks" />}
      <ErrorBox error={webhooks.error} retry={() => void webhooks.refetch()} />
      {isEmpty && (
        <EmptyState
          title="No webhooks yet"
          actions={add('Create a webhook')}
          command={curlOf('POST', '/api/v1/webhooks', {
            body: { url: 'https://hooks.example.com/cadre', events: ['task.completed', 'task.failed'] },
          })}
        >
          <p>
            A webhook sends a signed request to your service when a task ends, an agent fails or an approval is needed.
            If your service is down, it is retried for days.
          </p>
        </EmptyState>
      )}
      {webhooks.data?.total === 0 && isFiltered && <p className="py-6 text-soft">No matching webhooks.</p>}
      {webhooks.data && webhooks.data.total > 0 && (
        <div className={card}>
          <DataTable label="Webhooks" columns={columns} rows={webhooks.data.items} keyOf={({ id }) => id} />
          <Pager
            noun="webhooks"
            offset={(page - 1) * pageSize}
            limit={pageSize}
            total={webhooks.data.total}
            go={(offset) => setParams({ page: offset ? String(offset / pageSize + 1) : undefined })}
          />
        </div>
      )}
      <Dialog title="New webhook" isOpen={params.panel === 'new'} close={close} width="max-w-2xl" refused={mayNot}>
        <WebhookForm error={create.error} isBusy={create.isPending} submit={(values) => create.mutate(values)} />
      </Dialog>
      {made && (
        <Reveal
          title="Save the signing secret"
          secret={made.secret}
          file={`${made.id}.secret`}
          done={() => {
            setMade(undefined)
            tell('The webhook is ready')
          }}
          next={{ label: 'Send test event', run: () => test.mutate(made.id) }}
        >
          <p className="text-soft">
            Your receiver checks the header <code>webhook-signature</code> with it.
          </p>
        </Reveal>
      )}
    </PageFrame>
  )
}

const columns: Column<Webhook>[] = [
  {
    id: 'address',
    header: 'Address',
    cell: ({ id, url }) => (
      <Link {...paths.webhook(id)} className="break-all">
        {url}
      </Link>
    ),
  },
  { id: 'state', header: 'State', cell: WebhookState },
  {
    id: 'latest_50_deliveries',
    header: 'Latest 50 deliveries',
    cell: ({ recent_deliveries }) => <Rate {...recent_deliveries} />,
  },
  {
    id: 'last_delivery',
    header: 'Last delivery',
    cell: ({ recent_deliveries: { last_at } }) => (last_at === null ? 'none yet' : <Time at={last_at} />),
  },
  {
    id: 'events',
    header: 'Events',
    cell: ({ events }) => (
      <span className="text-sm" title={events.join(', ')}>
        {events.slice(0, 3).join(', ')}
        {events.length > 3 && ` and ${events.length - 3} more`}
      </span>
    ),
  },
  { id: 'identifier', header: 'ID', isExtra: true, cell: ({ id }) => <CopyId id={id} short /> },
]

function Rate({ delivered, failed, pending }: Webhook['recent_deliveries']) {
  const ended = delivered + failed
  if (ended + pending === 0) return <span className="text-soft">none yet</span>
  return (
    <span className="tabular-nums">
      {ended > 0 && `${formatShare(delivered / ended)}, `}
      <span className="text-sm text-soft">
        {failed} failed{pending > 0 && `, ${pending} waiting`}
      </span>
    </span>
  )
}
