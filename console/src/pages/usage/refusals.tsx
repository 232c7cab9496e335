import { formatCount } from '../../format.ts'
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { api } from '../../api/client.ts'
import { CopyId } from '../../ui/copy.tsx'
import { card, DataTable, type Column } from '../../ui/data-table.tsx'
import { ErrorBox } from '../../ui/error-box.tsx'
import { FilterSelect } from '../../ui/forms/field.tsx'
import { Pager } from '../../ui/pager.tsx'
import { Skeleton } from '../../ui/skeleton.tsx'
import { Time } from '../../ui/time.tsx'
import { useSearchText } from '../../search-state.ts'
import { Options } from '../parts/options.tsx'
import { limitWords } from './limit-labels.ts'
import type { Operations } from '#sdk/types.ts'

type Refusal = Operations['listRateLimitRefusals']['result']['refusals'][number]

const spans = { '1': 'Last 24 hours', '7': 'Last 7 days', '30': 'Last 30 days' }
const pageSize = 20
/** What limits refused in the last weeks, by hour, credential and limit. */
export function Refusals() {
  const [url, setUrl] = useSearchText()
  const days = url.days !== undefined && Object.hasOwn(spans, url.days) ? url.days : '7'
  const offset = Number(url.offset ?? 0)
  const refusals = useQuery({
    queryKey: ['limits', 'refusals', days, offset],
    queryFn: () =>
      api.user
        .refusals({
          limit: pageSize,
          offset,
          start_time: new Date(Date.now() - Number(days) * 86_400_000).toISOString(),
        })
        .page({ offset }),
    placeholderData: keepPreviousData,
    refetchInterval: 15_000,
  })
  return (
    <section className="mt-6" aria-labelledby="refusals">
      <div className="mb-3 flex flex-wrap items-center justify-between gap-2">
        <h2 id="refusals" className="text-md font-semibold">
          Refused with 429
        </h2>
        <FilterSelect
          label="Time of refusals"
          value={days}
          onChange={(event) => setUrl({ days: event.target.value, offset: undefined })}
        >
          <Options of={spans} />
        </FilterSelect>
      </div>
      {refusals.isPending && <Skeleton label="Loading refusals" />}
      <ErrorBox error={refusals.error} retry={() => void refusals.refetch()} />
      {refusals.data?.total === 0 && <p className="text-sm text-soft">No request was refused in this period.</p>}
      {refusals.data && refusals.data.total > 0 && (
        <div className={card}>
          <DataTable
            label="Refusals"
            columns={columns}
            rows={refusals.data.items}
            keyOf={({ hour, credential_id, name }) => `${hour} ${credential_id} ${name}`}
          />
          <Pager
            offset={offset}
            limit={pageSize}
            total={refusals.data.total}
            noun="rows"
            go={(to) => setUrl({ offset: to ? String(to) : undefined })}
          />
        </div>
      )}
    </section>
  )
}

const columns: Column<Refusal>[] = [
  { id: 'hour', header: 'Hour', cell: ({ hour }) => <Time at={hour} form="exact" /> },
  {
    id: 'limit',
    header: 'Limit',
    cell: ({ name }) => (
      <>
        {limitWords[name] ?? name} <code className="text-soft">{name}</code>
      </>
    ),
  },
  {
    id: 'credential',
    header: 'Credential',
    cell: ({ credential_id, credential_name }) => (
      <>
        {credential_name !== null && <div>{credential_name}</div>}
        <CopyId id={credential_id} short />
      </>
    ),
  },
  { id: 'requests', header: 'Requests', align: 'right', cell: ({ requests }) => formatCount(requests) },
  { id: 'last', header: 'Latest', cell: ({ last_at }) => <Time at={last_at} /> },
]
