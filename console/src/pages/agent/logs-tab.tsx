import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { api } from '../../api/client.ts'
import { paths } from '../../paths.ts'
import { EmptyState } from '../../ui/empty-state.tsx'
import { ErrorBox } from '../../ui/error-box.tsx'
import { Panel } from '../../ui/page.tsx'
import { Skeleton } from '../../ui/skeleton.tsx'
import { Badge } from '../../ui/status.tsx'
import { Time } from '../../ui/time.tsx'
import type { TabProps } from './tab.ts'

/** Entries that are shown here; the page of logs has all of them. */
const shown = 50
const tones = { debug: 'quiet', info: 'info', warn: 'warn', error: 'bad' } as const

/** The newest entries of its log. */
export function LogsTab({ project_id, agent }: TabProps) {
  const { data, error, refetch } = useQuery({
    queryKey: ['project', project_id, 'agents', 'logs', agent.id],
    queryFn: () => api.agents.logs(project_id, agent.id, { limit: shown }).page(),
  })
  return (
    <Panel
      title="The newest entries"
      actions={<Link {...paths.logs(project_id, { agent: agent.id })}>All, with filters</Link>}
    >
      <ErrorBox error={error} retry={() => void refetch()} />
      {!data && !error && <Skeleton />}
      {data?.items.length === 0 && <EmptyState title="Nothing is logged yet" />}
      <ul>
        {data?.items.map((entry, index) => (
          <li key={`${entry.timestamp} ${index}`} className="border-b border-line px-4 py-1.5 last:border-0">
            <details>
              <summary className="flex flex-wrap items-baseline gap-x-3">
                <span className="w-32 shrink-0 text-sm text-soft">
                  <Time at={entry.timestamp} />
                </span>
                <span className="w-12 shrink-0">
                  <Badge tone={tones[entry.level]}>{entry.level}</Badge>
                </span>
                <span className="min-w-0 flex-1 break-words">{entry.message}</span>
              </summary>
              <pre className="mt-1 overflow-x-auto rounded bg-quiet p-2 text-sm" tabIndex={0}>
                {JSON.stringify(entry.context, undefined, 2)}
              </pre>
            </details>
          </li>
        ))}
      </ul>
    </Panel>
  )
}
