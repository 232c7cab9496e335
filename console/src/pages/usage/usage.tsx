import { useQuery } from '@tanstack/react-query'
import { api } from '../../api/client.ts'
import { useProjectId } from '../../api/queries.ts'
import { paths } from '../../paths.ts'
import { ErrorBox } from '../../ui/error-box.tsx'
import { Skeleton } from '../../ui/skeleton.tsx'
import { TabLinks } from '../../ui/tabs.tsx'
import { useSearchText } from '../../search-state.ts'
import { PageFrame } from '../parts/page-frame.tsx'
import { Budgets } from './budgets.tsx'
import { Limits } from './limits.tsx'
import { Retention } from './retention.tsx'
import { UsageTable } from './usage-table.tsx'

const tabs = { usage: 'Usage', limits: 'Limits', budgets: 'Budgets', retention: 'Retention and storage' } as const
type Tab = keyof typeof tabs

/** What was used, what may be, and how long it is kept. */
export default function UsagePage() {
  const [url] = useSearchText()
  const project = useProjectId()
  const tab: Tab = url.tab !== undefined && Object.hasOwn(tabs, url.tab) ? (url.tab as Tab) : 'usage'
  const limits = useQuery({ queryKey: ['limits'], queryFn: () => api.user.limits(), refetchInterval: 10_000 })
  const group = url.group ?? 'agent'
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
      {tab === 'retention' && limits.data && <Retention retention={limits.data.retention} />}
    </PageFrame>
  )
}
