import { formatCount } from '../../format.ts'
import { useQuery } from '@tanstack/react-query'
import { Link, type LinkProps } from '@tanstack/react-router'
import { CircleCheck } from 'lucide-react'
import { api } from '../../api/client.ts'
import { usePendingApprovals, useWaiting } from '../../api/queries.ts'
import { paths } from '../../paths.ts'
import { ErrorBox } from '../../ui/error-box.tsx'
import { Panel } from '../../ui/page.tsx'

/** How far back failures are counted, in milliseconds. */
const day_ms = 86_400_000

/** What waits for a person, and what failed of late: each leads to the list of it. */
export function Waiting({ project_id, errors }: { project_id: string; errors: number }) {
  const approvals = usePendingApprovals(project_id)
  const waits = useWaiting(project_id)
  const failures = useQuery({
    queryKey: ['project', project_id, 'tasks', 'failures of a day'],
    queryFn: async () => {
      const finished_after = new Date(Date.now() - day_ms).toISOString()
      return (await api.tasks.list(project_id, { status: 'failed', finished_after, limit: 1 }).page()).total
    },
  })
  const open = useQuery({
    queryKey: ['project', project_id, 'tasks', 'running'],
    queryFn: async () => (await api.tasks.list(project_id, { status: 'running', limit: 1 }).page()).total,
  })
  const lines: { link: LinkProps; texts: [string, string]; count: number; tone: string }[] = [
    {
      link: paths.approvals(project_id),
      texts: ['approval waits for a decision', 'approvals wait for a decision'],
      count: approvals,
      tone: 'text-warn',
    },
    {
      link: paths.toolCalls(project_id),
      texts: ['tool call waits for its result', 'tool calls wait for their results'],
      count: waits.tool_calls,
      tone: 'text-warn',
    },
    {
      link: paths.tools(project_id, { status: 'drifted' }),
      texts: ['tool has changed and needs approval', 'tools have changed and need approval'],
      count: waits.tools,
      tone: 'text-warn',
    },
    {
      link: paths.credentials(project_id),
      texts: ['credential does not work', 'credentials do not work'],
      count: waits.credentials,
      tone: 'text-bad',
    },
    {
      link: paths.agents(project_id, { status: 'error' }),
      texts: ['agent is in error', 'agents are in error'],
      count: errors,
      tone: 'text-bad',
    },
    {
      link: paths.tasks(project_id, { status: 'failed', ended: '24h' }),
      texts: ['task failed in the last 24 hours', 'tasks failed in the last 24 hours'],
      count: failures.data ?? 0,
      tone: 'text-bad',
    },
    {
      link: paths.tasks(project_id, { status: 'running' }),
      texts: ['task is running', 'tasks are running'],
      count: open.data ?? 0,
      tone: 'text-info',
    },
  ]
  const waiting = lines.filter(({ count }) => count > 0)
  return (
    <Panel title="Waiting for you">
      <ErrorBox error={failures.error ?? open.error} />
      {waiting.length === 0 && (
        <p className="flex items-center gap-2 p-4 text-soft">
          <CircleCheck size={16} aria-hidden className="text-good" /> Nothing. Approvals, tool calls, failed tasks and
          agents in error appear here.
        </p>
      )}
      <ul>
        {waiting.map(({ link, texts: [one, many], count, tone }) => (
          <li key={many} className="border-b border-line last:border-0">
            <Link
              {...link}
              className="flex items-baseline gap-3 px-4 py-2.5 text-text no-underline hover:bg-quiet hover:text-text"
            >
              <span
                className={`min-w-7 text-right text-lg font-semibold tabular-nums ${count > 0 ? tone : 'text-soft'}`}
              >
                {formatCount(count)}
              </span>
              {count === 1 ? one : many}
            </Link>
          </li>
        ))}
      </ul>
    </Panel>
  )
}
