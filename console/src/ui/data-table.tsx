import { ArrowDown, ArrowUp, ChevronsUpDown } from 'lucide-react'
import { memo, useCallback, useEffect, useRef, type ReactNode } from 'react'

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
  /** Left out on a tablet and on a telephone, where not all columns fit; the page of the row has it. */
  isExtra?: boolean
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

/** In a card a cell is a fact: what it is, and below that what it is of this row. */
const cellShape =
  'px-3 py-1.5 text-left align-middle first:pl-4 last:pr-4 max-lg:px-2 max-sm:block max-sm:min-w-0 max-sm:px-0 max-sm:py-1 max-sm:first:pl-0 max-sm:last:pr-0 ' +
  'max-sm:data-[label]:before:block max-sm:data-[label]:before:text-xs max-sm:data-[label]:before:text-soft max-sm:data-[label]:before:content-[attr(data-label)]'

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

  const latest = useRef(selection)
  useEffect(() => void (latest.current = selection))
  const toggle = useCallback((key: string): void => {
    const next = new Set(latest.current?.chosen)
    if (!next.delete(key)) next.add(key)
    latest.current?.change(next)
  }, [])
  return (
    // Positioned, so that what only readers of screens get does not widen the page from a column that is scrolled away.
    <div className={`relative overflow-x-auto ${card}`}>
      <table aria-label={label} aria-busy={isBusy} className="w-full border-collapse max-sm:block" role="table">
        <thead className="max-sm:sr-only">
          <tr role="row" className="border-b border-line text-sm text-soft">
            {selection && (
              <th scope="col" className="w-10 pl-4 text-left">
                <input
                  type="checkbox"
                  aria-label="Select all on this page"
                  className="block size-4"
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
            <Row
              key={keys[at]}
              id={keys[at]!}
              row={row}
              columns={columns}
              name={selection?.nameOf(row)}
              isChosen={selection?.chosen.has(keys[at]!) === true}
              isCurrent={isCurrent?.(row) === true}
              toggle={toggle}
            />
          ))}
        </tbody>
      </table>
    </div>
  )
}

interface RowProps<Row> {
  id: string
  row: Row
  columns: readonly Column<Row>[]
  /** What it is called where it can be chosen. */
  name: string | undefined
  isChosen: boolean
  isCurrent: boolean
  toggle: (key: string) => void
}

/** A row is drawn anew only where something of it has changed: choosing one of fifty is the work of one. */
const Row = memo(function Row<Row>({ id, row, columns, name, isChosen, isCurrent, toggle }: RowProps<Row>) {
  return (
    <tr
      role="row"
      data-row={id}
      aria-current={isCurrent ? 'true' : undefined}
      className="border-b border-line last:border-0 hover:bg-quiet/60 aria-[current=true]:bg-accent-soft max-sm:relative max-sm:grid max-sm:grid-cols-2 max-sm:gap-x-4 max-sm:px-4 max-sm:py-3"
    >
      {name !== undefined && (
        <td role="cell" className="pl-4 max-sm:absolute max-sm:top-3 max-sm:right-4">
          <input
            type="checkbox"
            aria-label={`Select ${name}`}
            className="block size-4 max-sm:size-6"
            checked={isChosen}
            onChange={() => toggle(id)}
          />
        </td>
      )}
      {columns.map((column, index) => (
        <td
          key={column.id}
          role="cell"
          data-column={column.id}
          data-label={index > 0 && column.id !== 'actions' && column.header !== '' ? column.header : undefined}
          className={`${cellShape} ${cardShape(column, index)} ${index === 0 ? 'row-name' : ''} ${column.isExtra ? extra : ''} ${column.align === 'right' ? 'tabular-nums sm:text-right sm:whitespace-nowrap' : ''} ${column.isWide ? 'w-full max-w-0 truncate max-sm:w-auto max-sm:max-w-none' : ''} ${name !== undefined && index === 0 ? 'max-sm:!pr-10' : ''}`}
        >
          <span className={`min-w-0 max-sm:break-words ${column.isWide ? 'sm:block sm:truncate' : ''}`}>
            <Cell column={column} row={row} />
          </span>
        </td>
      ))}
    </tr>
  )
}) as <Row>(props: RowProps<Row> & { key?: string | undefined }) => ReactNode

const extra = 'max-lg:!hidden'

/** In a card the first cell is its title, short facts stand in two columns, and what can be done is in a row at its end. */
function cardShape<Row>({ id, isWide }: Column<Row>, index: number): string {
  if (index === 0) return 'max-sm:col-span-2 max-sm:pb-1.5 max-sm:font-medium'
  if (id === 'actions') return 'max-sm:col-span-2 max-sm:pt-2 max-sm:empty:hidden'
  return isWide ? 'max-sm:col-span-2' : ''
}

/** One kind of element for all cells: with one for each column, a cell would be made anew, and lose the focus, with every change of its column. */
function Cell<Row>({ column, row }: { column: Column<Row>; row: Row }) {
  return column.cell(row)
}

function HeaderCell<Row>({ column, sort }: { column: Column<Row>; sort: TableProps<Row>['sort'] }) {
  const shape = `px-3 py-2 font-medium whitespace-nowrap first:pl-4 last:pr-4 max-lg:px-2 ${column.isExtra ? extra : ''} ${column.align === 'right' ? 'text-right' : 'text-left'} ${column.isWide ? 'sm:min-w-44' : 'sm:first:min-w-32'}`
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
