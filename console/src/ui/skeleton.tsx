import { useQueryClient } from '@tanstack/react-query'
import { useEffect, useState, type ReactNode } from 'react'

/** The place of something that is being loaded. */
export function Skeleton({ rows = 5, label = 'Loading' }: { rows?: number; label?: string }) {
  return (
    <div role="status" aria-label={label} className="space-y-2 p-3">
      {Array.from({ length: rows }, (_, row) => (
        <div key={row} className="h-7 animate-pulse rounded bg-quiet" />
      ))}
    </div>
  )
}

/** Parts of a page are shown after this long at the latest. */
const settle_ms = 800

/**
 * Shows its parts together, once each has what it asked for first: parts that came one by one would push each other around. Until then
 * `skeleton` is in their place. What was read before is shown at once.
 */
export function WhenSettled({ children, skeleton }: { children: ReactNode; skeleton?: ReactNode }) {
  const queries = useQueryClient()
  const [isSettled, settle] = useState(false)
  useEffect(() => {
    if (isSettled) return
    const look = (): void => {
      if (queries.isFetching({ predicate: ({ state }) => state.data === undefined }) === 0) settle(true)
    }
    // What is around these parts begins to ask after they do.
    queueMicrotask(look)
    // A part may ask for more once it has its first answer: it does so before this tells of the answer.
    const leave = queries.getQueryCache().subscribe(() => setTimeout(look))
    const timer = setTimeout(() => settle(true), settle_ms)
    return () => {
      leave()
      clearTimeout(timer)
    }
  }, [queries, isSettled])
  return (
    <div className="relative">
      {!isSettled && <div className="absolute inset-x-0 top-0">{skeleton}</div>}
      <div className={isSettled ? '' : 'invisible'}>{children}</div>
    </div>
  )
}
