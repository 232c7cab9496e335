import { useQuery } from '@tanstack/react-query'
import { Link, useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { useVersionMarks } from '../../agents/version-marks.ts'
import { paths } from '../../paths.ts'
import { useSearchText } from '../../search-state.ts'
import { ErrorBox } from '../../ui/error-box.tsx'
import { FilterSelect } from '../../ui/forms/field.tsx'
import { Skeleton } from '../../ui/skeleton.tsx'
import { Figures } from '../metrics/figures.tsx'
import { intervalOf, metricsQuery, secondsOf } from '../metrics/metrics-query.ts'
import { ranges, type RangeName } from '../metrics/periods.ts'
import { Series } from '../metrics/series.tsx'
import { Options } from '../parts/options.tsx'
import type { TabProps } from './tab.ts'

const rangeLabels = Object.fromEntries(Object.entries(ranges).map(([name, { label }]) => [name, label]))

/** How it did over time, with its versions marked: what changed when it broke. */
export function MetricsTab({ project_id, agent }: TabProps) {
  const navigate = useNavigate()
  const [params, setParams] = useSearchText()
  const [cursor, setCursor] = useState<number | null>(null)
  const range: RangeName =
    params.range !== undefined && Object.hasOwn(ranges, params.range) ? (params.range as RangeName) : '7d'
  const interval = intervalOf(range)
  const { data, error, refetch } = useQuery(metricsQuery(project_id, { agent_id: agent.id, range, interval }))
  const marks = useVersionMarks(project_id, agent.id)
  return (
    <>
      <div className="mb-4 flex flex-wrap items-center gap-3">
        <FilterSelect label="Range" value={range} onChange={({ target }) => setParams({ range: target.value })}>
          <Options of={rangeLabels} />
        </FilterSelect>
        <Link {...paths.metrics(project_id, { agent: agent.id, range })}>More in Metrics</Link>
      </div>
      <ErrorBox error={error} retry={() => void refetch()} />
      {!data && !error && <Skeleton rows={12} />}
      {data && (
        <>
          <Figures now={data.now} before={data.before} />
          <Series
            now={data.now.time_series}
            before={undefined}
            resources={undefined}
            marks={marks}
            isTable={false}
            cursor={cursor}
            setCursor={setCursor}
            open={(index) => {
              const point = data.now.time_series[index]
              if (!point) return
              const finished_before = new Date(Date.parse(point.timestamp) + secondsOf(interval) * 1000).toISOString()
              void navigate(
                paths.tasks(project_id, { agent: agent.id, finished_after: point.timestamp, finished_before }),
              )
            }}
          />
        </>
      )}
    </>
  )
}
