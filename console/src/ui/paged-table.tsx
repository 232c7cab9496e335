import type { ReactNode } from 'react'
import { card, DataTable, type TableProps } from './data-table.tsx'
import { ErrorBox } from './error-box.tsx'
import { Pager } from './pager.tsx'
import { Skeleton } from './skeleton.tsx'

/** What is known of a page of a list: nothing yet, an error, or its entries and how many there are in all. */
export interface PageQuery<Row> {
  data?: { items: readonly Row[]; total: number } | undefined
  error: unknown
  refetch: () => unknown
}

/** A page of a list as a table, with the way to the others; or what is in its place. `empty` is shown where there are none. */
export function PagedTable<Row extends object>({
  query: { data, error, refetch },
  noun,
  offset,
  limit,
  go,
  empty,
  skeletonRows,
  ...table
}: Omit<TableProps<Row>, 'rows'> & {
  query: PageQuery<Row>
  noun: string
  offset: number
  limit: number
  go: (offset: number) => void
  empty?: ReactNode
  skeletonRows?: number
}) {
  return (
    // What stands here while the list loads is replaced by it, and not moved.
    <div key={data === undefined ? 'loading' : 'list'} className={data && data.items.length > 0 ? card : ''}>
      <ErrorBox error={error} retry={() => void refetch()} />
      {!data && error == null && <Skeleton {...(skeletonRows === undefined ? {} : { rows: skeletonRows })} />}
      {data?.total === 0 && empty}
      {data && data.total > 0 && offset >= data.total && (
        <p className="p-4 text-soft">The list ends before this page: entries may have been deleted.</p>
      )}
      {data && data.items.length > 0 && <DataTable {...table} rows={data.items} />}
      {data && (data.total > 0 || empty === undefined) && (
        <Pager offset={offset} limit={limit} total={data.total} noun={noun} go={go} />
      )}
    </div>
  )
}
