import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import type { Operations } from '#sdk/types.ts'
import { api } from '../../api/client.ts'
import { paths } from '../../paths.ts'
import { useSearchState } from '../../search-state.ts'
import { ButtonLink } from '../../ui/button.tsx'
import type { Column } from '../../ui/data-table.tsx'
import { EmptyState } from '../../ui/empty-state.tsx'
import { Panel } from '../../ui/page.tsx'
import { PagedTable } from '../../ui/paged-table.tsx'
import { Status } from '../../ui/status.tsx'
import { Time } from '../../ui/time.tsx'
import { WebhookState } from '../webhooks/webhook-state.tsx'
import type { TabProps } from './tab.ts'

type Webhook = Operations['listWebhooks']['result']['webhooks'][number]

const pageSize = 20

/** Webhooks that get its events, and their last results. */
export function WebhooksTab({ agent }: TabProps) {
  const [search, change] = useSearchState<{ page?: number | string | undefined }>()
  const page = Number(search.page ?? 1)
  const query = { agent_id: agent.id, limit: pageSize, page }
  const webhooks = useQuery({
    queryKey: ['webhooks', 'of agent', query],
    queryFn: () => api.webhooks.list(query).page({ page }),
    placeholderData: keepPreviousData,
  })
  return (
    <>
      <p className="mb-3 max-w-3xl text-soft">
        Addresses that may get events of this agent, by the events that they subscribe to and by their filters on its
        id, name and project.
      </p>
      <Panel>
        <PagedTable
          label="Webhooks for this agent"
          noun="webhooks"
          query={webhooks}
          columns={columns}
          keyOf={({ id }) => id}
          offset={(page - 1) * pageSize}
          limit={pageSize}
          go={(offset) => change({ page: offset ? offset / pageSize + 1 : undefined })}
          empty={
            <EmptyState
              title="No webhooks for this agent"
              actions={<ButtonLink {...paths.webhooks({ panel: 'new' })}>Create a webhook</ButtonLink>}
            >
              <p>
                A webhook sends a request to your service when a task ends, the agent fails or an approval is needed.
                With the filter <code>{JSON.stringify({ agent_id: [agent.id] })}</code> on events of tasks it gets those
                of this agent alone.
              </p>
            </EmptyState>
          }
        />
      </Panel>
    </>
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
  { id: 'events', header: 'Events', cell: ({ events }) => <span className="text-sm">{events.join(', ')}</span> },
  {
    id: 'last',
    header: 'Last delivery',
    cell: ({ id, recent_deliveries: { last_at, last_status } }) =>
      last_at === null || last_status === null ? (
        <span className="text-soft">none yet</span>
      ) : (
        <Link {...paths.webhook(id)} className="inline-flex flex-wrap items-center gap-2 no-underline">
          <Status state={last_status} />
          <Time at={last_at} />
        </Link>
      ),
  },
  {
    id: 'failed',
    header: 'Failed, last 50',
    align: 'right',
    cell: ({ recent_deliveries: { delivered, failed, pending } }) =>
      delivered + failed + pending === 0 ? <span className="text-soft">–</span> : failed,
  },
]
