import { formatCost, formatCount, formatShort } from '../../format.ts'
import { useMutation, useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { api } from '../../api/client.ts'
import { paths } from '../../paths.ts'
import { Button, ButtonLink } from '../../ui/button.tsx'
import { CopyId } from '../../ui/copy.tsx'
import { EmptyState } from '../../ui/empty-state.tsx'
import { ErrorBox } from '../../ui/error-box.tsx'
import { FilterSelect } from '../../ui/forms/field.tsx'
import { Pager } from '../../ui/pager.tsx'
import { Time } from '../../ui/time.tsx'
import { useSearchText } from '../../search-state.ts'
import { card, DataTable, type Column } from '../../ui/data-table.tsx'
import { saveFile } from '../../ui/save-file.ts'
import { Options } from '../parts/options.tsx'
import { nothingToCompare, Tile, Tiles } from '../../ui/charts/tiles.tsx'
import { asCsv } from './csv.ts'
import { UsageChart } from './usage-chart.tsx'
import type { Usage } from '#sdk/types.ts'

const groups = { agent: 'by agent', model: 'by model', tool: 'by tool', api_key: 'by key' } as const
type Group = keyof typeof groups
const spans = { '1': 'Last 24 hours', '7': 'Last 7 days', '30': 'Last 30 days', '90': 'Last 90 days' }
const pageSize = 50
/** An export asks page after page, up to so many groups. */
const exportedMax = 10_000

type Text = (value: number) => string

const titles = { agent: 'Agent', model: 'Model', tool: 'Tool', api_key: 'Key' } as const

/** What a row is about, by its own identifier: names may be those of several. */
function idOf({ agent_id, api_key_id, model, tool }: Usage['usage'][number]): string {
  return agent_id ?? api_key_id ?? model ?? tool ?? ''
}

/** Calls, tokens and cost of a project, by what they were for. */
export function UsageTable({ project }: { project: string }) {
  const [url, setUrl] = useSearchText()
  const group: Group = url.group !== undefined && Object.hasOwn(groups, url.group) ? (url.group as Group) : 'agent'
  const days = url.days !== undefined && Object.hasOwn(spans, url.days) ? url.days : '30'
  const offset = Number(url.offset ?? 0)
  const query = () => ({
    group_by: group,
    start_time: new Date(Date.now() - Number(days) * 86_400_000).toISOString(),
  })
  const usage = useQuery({
    queryKey: ['usage', project, group, days, offset],
    queryFn: async () => {
      const { start_time, group_by } = query()
      const earlier = new Date(Date.parse(start_time) - Number(days) * 86_400_000).toISOString()
      const [page, before] = await Promise.all([
        api.usage.get(project, { start_time, group_by, limit: pageSize, offset }).page({ offset }),
        api.usage.get(project, { start_time: earlier, end_time: start_time, group_by, limit: 1 }).page(),
      ])
      return { page, before: before.body.total }
    },
  })
  const page = usage.data?.page
  const agents = useQuery({
    queryKey: ['agents', project, 'names'],
    enabled: group === 'agent',
    queryFn: async () => {
      const found = await api.agents.list(project, { limit: 100 }).toArray({ max: 500 })
      return new Map(found.map(({ id, name }) => [id, name]))
    },
  })
  const nameOf = (row: Usage['usage'][number]): string => {
    if (group === 'model') return row.model ?? 'Tools'
    if (group === 'tool') return row.tool ?? 'Models'
    if (group === 'api_key') return row.api_key_name ?? row.api_key_id ?? 'none'
    return agents.data?.get(row.agent_id ?? '') ?? row.agent_id ?? 'none'
  }
  const save = async (): Promise<{ isWhole: boolean }> => {
    const rows = await api.usage.get(project, { ...query(), limit: 100 }).toArray({ max: exportedMax })
    const header = [
      group,
      'id',
      'calls',
      'input_tokens',
      'output_tokens',
      'cached_tokens',
      'cost_usd',
      'unpriced_calls',
    ]
    const lines = rows.map((row) => [
      nameOf(row),
      idOf(row),
      row.calls,
      row.input_tokens,
      row.output_tokens,
      row.cached_tokens,
      row.cost_usd,
      row.unpriced_calls,
    ])
    saveFile(`usage-${project}-${group}.csv`, 'text/csv;charset=utf-8', [asCsv(header, lines)])
    return { isWhole: rows.length < exportedMax }
  }
  const saving = useMutation({ mutationFn: save })
  const total = page?.body.total
  const before = usage.data?.before
  const isComparable = before !== undefined && before.calls > 0
  const change = (of: 'cost_usd' | 'input_tokens' | 'output_tokens' | 'cached_tokens' | 'calls', text: Text) =>
    total && isComparable ? { now: total[of] ?? 0, was: before[of] ?? 0, text: text(before[of] ?? 0) } : undefined
  const columns: Column<Usage['usage'][number]>[] = [
    {
      id: 'group',
      header: titles[group],
      cell: (row) => (
        <>
          <span className="break-all">
            {row.agent_id ? (
              <Link {...paths.agent(project, row.agent_id)}>{nameOf(row)}</Link>
            ) : row.api_key_id ? (
              <Link {...paths.keys({ panel: row.api_key_id })}>{nameOf(row)}</Link>
            ) : (
              nameOf(row)
            )}
          </span>
          {(group === 'agent' || group === 'api_key') && idOf(row) !== '' && (
            <div className="text-xs text-soft">
              <CopyId id={idOf(row)} short />
            </div>
          )}
        </>
      ),
    },
    { id: 'calls', header: 'Calls', align: 'right', cell: (row) => formatCount(row.calls) },
    { id: 'input_tokens', header: 'Input tokens', align: 'right', cell: (row) => formatCount(row.input_tokens) },
    { id: 'output_tokens', header: 'Output tokens', align: 'right', cell: (row) => formatCount(row.output_tokens) },
    { id: 'cached_tokens', header: 'Cached tokens', align: 'right', cell: (row) => formatCount(row.cached_tokens) },
    { id: 'cost', header: 'Cost', align: 'right', cell: (row) => formatCost(row.cost_usd) },
  ]
  return (
    <>
      <div className="mb-4 flex flex-wrap items-center gap-2">
        <FilterSelect
          label="Group"
          value={group}
          onChange={(event) => setUrl({ group: event.target.value, offset: undefined })}
        >
          <Options of={groups} />
        </FilterSelect>
        <FilterSelect
          label="Time"
          value={days}
          onChange={(event) => setUrl({ days: event.target.value, offset: undefined })}
        >
          <Options of={spans} />
        </FilterSelect>
        <Button onClick={() => saving.mutate()} reason={page?.total ? undefined : 'There is nothing to export'}>
          {saving.isPending ? 'Exporting…' : 'Export CSV'}
        </Button>
      </div>
      <ErrorBox error={saving.error} retry={() => saving.mutate()} />
      {saving.data?.isWhole === false && (
        <p role="status" className="mb-3 text-sm text-soft">
          The file has the first {formatCount(exportedMax)} rows; a shorter time has fewer.
        </p>
      )}
      {usage.isPending && (
        <div
          role="status"
          aria-label="Loading usage"
          className="mb-4 h-[5.9rem] animate-pulse rounded-lg bg-quiet max-sm:h-72"
        />
      )}
      <ErrorBox error={usage.error} retry={() => void usage.refetch()} />
      {total && (
        <Tiles label="Total" note={isComparable ? undefined : nothingToCompare}>
          <Tile label="Cost" value={formatCost(total.cost_usd)} before={change('cost_usd', formatCost)} />
          <Tile
            label="Input tokens"
            value={formatShort(total.input_tokens)}
            before={change('input_tokens', formatShort)}
          />
          <Tile
            label="Output tokens"
            value={formatShort(total.output_tokens)}
            before={change('output_tokens', formatShort)}
          />
          <Tile
            label="Cached tokens"
            value={formatShort(total.cached_tokens)}
            before={change('cached_tokens', formatShort)}
          />
          <Tile label="Calls" value={formatCount(total.calls)} before={change('calls', formatShort)} />
        </Tiles>
      )}
      {page?.total !== 0 && <UsageChart project={project} group={group} days={Number(days)} />}
      {total && total.unpriced_calls > 0 && (
        <p className="mb-3 text-sm text-soft">
          {formatCount(total.unpriced_calls)} model calls have no known price, so their cost is not included.
        </p>
      )}
      {page?.total === 0 && (
        <EmptyState
          title="No usage in this period"
          actions={
            <ButtonLink kind="primary" {...paths.playground(project)}>
              Run a task
            </ButtonLink>
          }
        >
          <p>Model and tool calls are counted here by the hour, with their tokens and cost.</p>
        </EmptyState>
      )}
      {page && page.total > 0 && (
        <>
          <div className={card}>
            <DataTable label="Usage" columns={columns} rows={page.items} keyOf={idOf} />
            <Pager
              offset={offset}
              limit={pageSize}
              total={page.total}
              noun="rows"
              go={(to) => setUrl({ offset: to ? String(to) : undefined })}
            />
          </div>
          <p className="mt-2 text-xs text-soft">
            From <Time at={page.body.period.start_time} />, in whole hours of UTC.
          </p>
        </>
      )}
    </>
  )
}
