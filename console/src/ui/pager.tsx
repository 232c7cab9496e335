import { formatCount } from '../format.ts'
import { ChevronLeft, ChevronRight } from 'lucide-react'
import { IconButton } from './button.tsx'

/** Which part of a list is shown, and the way to the others. */
export function Pager({
  offset,
  limit,
  total,
  go,
  noun,
}: {
  offset: number
  limit: number
  total: number
  go: (offset: number) => void
  /** What the list is of, in the plural. */
  noun: string
}) {
  const last = Math.min(offset + limit, total)
  // From a place past the end, the way back leads to the last page.
  const previous = Math.max(0, Math.min(offset - limit, Math.floor((total - 1) / limit) * limit))
  return (
    <nav aria-label={`Pages of ${noun}`} className="flex items-center justify-between gap-2 px-4 py-1.5 text-soft">
      <span>
        {total === 0
          ? `No ${noun}`
          : offset >= total
            ? `None here: there are ${formatCount(total)} ${noun}`
            : total === 1
              ? `1 ${noun.replace(/ies$/, 'y').replace(/s$/, '')}`
              : `${formatCount(offset + 1)}–${formatCount(last)} of ${formatCount(total)} ${noun}`}
      </span>
      <span className="flex gap-1">
        <IconButton label="Previous page" disabled={offset === 0} onClick={() => go(previous)}>
          <ChevronLeft size={16} aria-hidden />
        </IconButton>
        <IconButton label="Next page" disabled={last >= total} onClick={() => go(offset + limit)}>
          <ChevronRight size={16} aria-hidden />
        </IconButton>
      </span>
    </nav>
  )
}
