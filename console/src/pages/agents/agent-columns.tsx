import { Link } from '@tanstack/react-router'
import type { Agent, AgentStatistics } from '#sdk/types.ts'
import { tagsOf } from '../../agents/tags.ts'
import { paths } from '../../paths.ts'
import { CopyId } from '../../ui/copy.tsx'
import type { Column } from '../../ui/data-table.tsx'
import { Sparkline } from '../../ui/charts/sparkline.tsx'
import { Badge, Status } from '../../ui/status.tsx'
import { formatCount, formatDuration, formatShare } from '../../format.ts'
import { Time } from '../../ui/time.tsx'
import type { Outcome } from './bulk-bar.tsx'

/** Columns that are there only for who asks for them. */
export const hiddenAtFirst = 'id,description'

/** What the table shows of an agent; figures are of the last 24 hours. */
export function agentColumns(
  project_id: string,
  statistics: ReadonlyMap<string, AgentStatistics>,
  outcomes: ReadonlyMap<string, Outcome>,
): Column<Agent>[] {
  const figure = (text: (statistics: AgentStatistics) => string | undefined) =>
    function Figure({ id }: Agent) {
      const one = statistics.get(id)
      const shown = one && text(one)
      return shown ?? <span className="text-soft">–</span>
    }
  const columns: Column<Agent>[] = [
    {
      id: 'name',
      header: 'Name',
      sort: 'name',
      cell: (agent) => (
        <span className="inline-flex flex-wrap items-center gap-x-2 gap-y-1">
          <Link {...paths.agent(project_id, agent.id)} className="font-medium text-text no-underline hover:underline">
            {agent.name}
          </Link>
          {tagsOf(agent).map((tag) => (
            <Link key={tag} {...paths.agents(project_id, { tag })} title={`Agents with the tag ${tag}`}>
              <Badge>{tag}</Badge>
            </Link>
          ))}
        </span>
      ),
    },
    { id: 'status', header: 'State', cell: ({ status }) => <Status state={status} /> },
    { id: 'model', header: 'Model', cell: ({ config }) => <code>{config.model}</code> },
    { id: 'description', header: 'Description', isWide: true, cell: ({ description }) => description },
    {
      id: 'tasks',
      header: 'Tasks, 24 h',
      align: 'right',
      cell: figure(({ completed, failed, canceled }) => formatCount(completed + failed + canceled)),
    },
    {
      id: 'success',
      header: 'Success',
      align: 'right',
      cell: figure(({ completed, failed, success_rate }) =>
        completed + failed === 0 ? undefined : formatShare(success_rate),
      ),
    },
    {
      id: 'p95',
      header: 'p95',
      isExtra: outcomes.size > 0,
      align: 'right',
      cell: figure(({ completed, failed, p95_response_time }) =>
        completed + failed === 0 ? undefined : formatDuration(p95_response_time * 1000),
      ),
    },
    {
      id: 'hours',
      header: 'Tasks by hour',
      isExtra: true,
      cell: ({ id }) => {
        const one = statistics.get(id)
        if (!one) return <span className="block h-5 w-24" />
        const label = `24 hours: ${formatCount(one.completed)} completed, ${formatCount(one.failed)} failed`
        return (
          <Link {...paths.agent(project_id, id, { tab: 'metrics' })} className="inline-block">
            <Sparkline points={one.time_series} label={label} />
          </Link>
        )
      },
    },
    // What became of the chosen ones takes its place on a tablet.
    {
      id: 'activity',
      header: 'Last activity',
      isExtra: outcomes.size > 0,
      cell: ({ last_activity }) => <Time at={last_activity} />,
    },
    {
      id: 'created',
      header: 'Created',
      sort: 'created_at',
      isExtra: true,
      cell: ({ created_at }) => <Time at={created_at} />,
    },
    { id: 'id', header: 'ID', cell: ({ id }) => <CopyId id={id} short /> },
  ]
  if (outcomes.size === 0) return columns
  const result: Column<Agent> = {
    id: 'result',
    header: 'Result',
    cell: ({ id }) => {
      const outcome = outcomes.get(id)
      if (!outcome) return null
      return <Status state={outcome.isGood ? 'completed' : 'failed'} label={outcome.text} />
    },
  }
  return [...columns.slice(0, 2), result, ...columns.slice(2)]
}
