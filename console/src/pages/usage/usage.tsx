import { formatSize } from '../../format.ts'
import { useQuery } from '@tanstack/react-query'
import { api } from '../../api/client.ts'
import { useProjectId } from '../../api/queries.ts'
import { paths } from '../../paths.ts'
import { ErrorBox } from '../../ui/error-box.tsx'
import { Skeleton } from '../../ui/skeleton.tsx'
import { TabLinks } from '../../ui/tabs.tsx'
import { useSearchText } from '../../search-state.ts'
import { DataTable } from '../../ui/data-table.tsx'
import { PageFrame } from '../parts/page-frame.tsx'
import { Budgets } from './budgets.tsx'
import { Limits } from './limits.tsx'
import { storedKinds } from './stored-kinds.ts'
import { UsageTable } from './usage-table.tsx'
import type { Operations } from '#sdk/types.ts'

const tabs = { usage: 'Usage', limits: 'Limits', budgets: 'Budgets', retention: 'Retention and storage' } as const
type Tab = keyof typeof tabs

type Standing = Operations['getRateLimits']['result']

/** Bytes of all kinds together; undefined where they are unknown. */
function storedOf(limits: Standing | undefined): number | undefined {
  const limited = limits?.retention.flatMap(({ bytes }) => (bytes === null ? [] : [bytes])) ?? []
  return limited.length === 0 ? undefined : limited.reduce((sum, bytes) => sum + bytes, 0)
}

/** What was used, what may be, and how long it is kept. */
export default function UsagePage() {
  const [url] = useSearchText()
  const project = useProjectId()
  const tab: Tab = url.tab !== undefined && Object.hasOwn(tabs, url.tab) ? (url.tab as Tab) : 'usage'
  const limits = useQuery({ queryKey: ['limits'], queryFn: () => api.user.limits(), refetchInterval: 10_000 })
  const group = url.group ?? 'agent'
  const stored = storedOf(limits.data)
  const shown = {
    usage: { path: `/api/v1/projects/${project}/usage`, query: { group_by: group } },
    limits: { path: '/api/v1/auth/limits' },
    budgets: { path: `/api/v1/projects/${project}/budgets` },
    retention: { path: '/api/v1/auth/limits' },
  }[tab]
  return (
    <PageFrame
      title="Usage and limits"
      lead="What agents used, what it cost, and how close you are to the limits."
      {...shown}
    >
      <TabLinks
        label="Usage and limits"
        current={tab}
        tabs={(Object.keys(tabs) as Tab[]).map((id) => ({
          id,
          label: tabs[id],
          link: paths.usage(project, id === 'usage' ? {} : { tab: id }),
        }))}
      />
      {tab === 'usage' && <UsageTable project={project} />}
      {tab === 'budgets' && <Budgets project={project} />}
      {(tab === 'limits' || tab === 'retention') && limits.isPending && <Skeleton label="Loading limits" />}
      {(tab === 'limits' || tab === 'retention') && limits.isError && (
        <ErrorBox error={limits.error} retry={() => void limits.refetch()} />
      )}
      {tab === 'limits' && limits.data && <Limits {...limits.data} />}
      {tab === 'retention' && limits.data && (
        <>
          <DataTable
            label="Retention"
            columns={[
              { id: 'what', header: 'Data', cell: ({ kind }) => storedKinds[kind] ?? kind },
              {
                id: 'kept_at_least',
                header: 'Retention',
                cell: ({ days }) => (days === null ? 'forever' : `${days} days`),
              },
              ...(stored === undefined
                ? []
                : [
                    {
                      id: 'takes',
                      header: 'Disk usage',
                      align: 'right' as const,
                      cell: ({ bytes }: { bytes: number | null }) => formatSize(bytes ?? 0),
                    },
                  ]),
            ]}
            rows={limits.data.retention}
            keyOf={({ kind }) => kind}
          />
          <p className="mt-3 max-w-prose text-sm text-soft">
            The operator sets the retention of tasks and logs by{' '}
            <code className="font-mono">CADRE_TASK_RETENTION_DAYS</code> and{' '}
            <code className="font-mono">CADRE_LOG_RETENTION_DAYS</code>.
          </p>
          <p className="mt-2 max-w-prose text-sm text-soft">
            {stored === undefined
              ? 'Owners and admins see disk usage by kind if the service has one organization. With several, PostgreSQL cannot tell their data apart.'
              : `${formatSize(stored)} in total for all projects, with indexes and with free space that new data will use.`}
          </p>
        </>
      )}
    </PageFrame>
  )
}
