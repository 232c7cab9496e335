import { ArrowDown, ArrowUp, ChevronsUpDown } from 'lucide-react'
import type { ReactNode } from 'react'

/** A column: what it is called, and what of a row it shows. */
export interface Column<Row> {
  id: string
  header: string
  cell: (row: Row) => ReactNode
  /** By what the API sorts it; left out where it does not. */
  sort?: string
  align?: 'right'
  /** Takes the room that the others leave, and cuts what is too long. */
  isWide?: boolean
}

export interface TableProps<Row> {
  /** What the table is about, for who cannot see it. */
  label: string
  columns: readonly Column<Row>[]
  rows: readonly Row[]
  keyOf: (row: Row) => string
  sort?: { by: string; order: 'asc' | 'desc'; change: (by: string, order: 'asc' | 'desc') => void } | undefined
  /** Rows that are chosen, to do something with all of them. */
  selection?:
    | { chosen: ReadonlySet<string>; change: (chosen: Set<string>) => void; nameOf: (row: Row) => string }
    | undefined
  /** Whether the row is the one that the keyboard is at, or that is open beside. */
  isCurrent?: (row: Row) => boolean
  isBusy?: boolean
}

/** A table stands in a card: its own, or that of the part of the page that it fills. */
export const card = 'table-card rounded-lg border border-line bg-panel'

const cellShape =
  'px-3 py-1.5 text-left align-middle max-sm:flex max-sm:items-start max-sm:justify-between max-sm:gap-4 max-sm:px-0 max-sm:py-1'

/** A table that is one: headers say how it is sorted, rows can be chosen, and on a telephone each row is a card. */
export function DataTable<Row extends object>({
  label,
  columns,
  rows,
  keyOf,
  sort,
  selection,
  isCurrent,
  isBusy,
}: TableProps<Row>) {
  const keys = rows.map(keyOf)
  const isAllChosen = keys.length > 0 && selection !== undefined && keys.every((key) => selection.chosen.has(key))

  const toggle = (key: string): void => {
    const next = new Set(selection?.chosen)
    if (!next.delete(key)) next.add(key)
    selection?.change(next)
  }
  return (
    <div className={`overflow-x-auto ${card}`}>
      <table aria-label={label} aria-busy={isBusy} className="w-full border-collapse max-sm:block" role="table">
        <thead className="max-sm:sr-only">
          <tr role="row" className="border-b border-line text-sm text-soft">
            {selection && (
              <th scope="col" className="w-9 px-3">
                <input
                  type="checkbox"
                  aria-label="Select all on this page"
                  className="size-4 accent-(--accent)"
                  checked={isAllChosen}
                  onChange={() => selection.change(new Set(isAllChosen ? [] : keys))}
                />
              </th>
            )}
            {columns.map((column) => (
              <HeaderCell key={column.id} column={column} sort={sort} />
            ))}
          </tr>
        </thead>
        <tbody role="rowgroup" className="max-sm:block">
          {rows.map((row, at) => (
            <tr
              key={keys[at]}
              role="row"
              data-row={keys[at]}
              aria-current={isCurrent?.(row) ? 'true' : undefined}
              className="border-b border-line last:border-0 hover:bg-quiet/60 aria-[current=true]:bg-accent-soft max-sm:relative max-sm:block max-sm:p-3"
            >
              {selection && (
                <td role="cell" className="px-3 max-sm:absolute max-sm:top-3 max-sm:right-0">
                  <input
                    type="checkbox"
                    aria-label={`Select ${selection.nameOf(row)}`}
                    className="size-4 accent-(--accent) max-sm:size-6"
                    checked={selection.chosen.has(keys[at]!)}
                    onChange={() => toggle(keys[at]!)}
                  />
                </td>
              )}
              {columns.map((column, index) => (
                <td
                  key={column.id}
                  role="cell"
                  data-column={column.id}
                  className={`${cellShape} ${cardShape(column, index)} ${column.align === 'right' ? 'tabular-nums sm:text-right sm:whitespace-nowrap' : ''} ${column.isWide ? 'w-full max-w-0 truncate max-sm:w-auto max-sm:max-w-none' : ''} ${selection && index === 0 ? 'max-sm:!pr-10' : ''}`}
                >
                  {index > 0 && column.id !== 'actions' && (
                    <span aria-hidden className="shrink-0 text-sm text-soft sm:hidden">
                      {column.header}
                    </span>
                  )}
                  <span className={`min-w-0 ${column.isWide ? 'sm:block sm:truncate' : ''}`}>
                    <Cell column={column} row={row} />
                  </span>
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

/** In a card the first cell is its title, and what can be done is in a row at its end. */
function cardShape<Row>({ id }: Column<Row>, index: number): string {
  if (index === 0) return 'max-sm:pb-1.5 max-sm:font-medium'
  return id === 'actions' ? 'max-sm:justify-start max-sm:pt-2 max-sm:empty:hidden' : ''
}

/** One kind of element for all cells: with one for each column, a cell would be made anew, and lose the focus, with every change of its column. */
function Cell<Row>({ column, row }: { column: Column<Row>; row: Row }) {
  return column.cell(row)
}

function HeaderCell<Row>({ column, sort }: { column: Column<Row>; sort: TableProps<Row>['sort'] }) {
  const shape = `px-3 py-2 font-medium whitespace-nowrap ${column.align === 'right' ? 'text-right' : 'text-left'} ${column.isWide ? 'sm:min-w-44' : 'sm:first:min-w-32'}`
  if (column.sort === undefined || !sort)
    return (
      <th scope="col" className={shape}>
        {column.header}
      </th>
    )
  const by = column.sort
  const isSorted = sort.by === by
  const Icon = !isSorted ? ChevronsUpDown : sort.order === 'asc' ? ArrowUp : ArrowDown
  return (
    <th
      scope="col"
      className={shape}
      aria-sort={isSorted ? (sort.order === 'asc' ? 'ascending' : 'descending') : 'none'}
    >
      <button
        type="button"
        className="inline-flex min-h-6 items-center gap-1 hover:text-text"
        onClick={() => sort.change(by, isSorted && sort.order === 'asc' ? 'desc' : 'asc')}
      >
        {column.header}
        <Icon size={12} aria-hidden />
      </button>
    </th>
  )
}
