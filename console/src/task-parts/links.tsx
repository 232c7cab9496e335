import { Link, useParams } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import type { Search } from '../search-state.ts'
import { useSearchState } from '../search-state.ts'

/** A link inside the console. Paths are made of ids, so they are not checked against the routes by type. */
export function A({
  to,
  search,
  children,
  className = 'text-accent underline underline-offset-2',
}: {
  to: string
  search?: Record<string, string | number | undefined>
  children: ReactNode
  className?: string
}) {
  return (
    <Link to={to as '/'} search={(search ?? {}) as never} className={className}>
      {children}
    </Link>
  )
}

/** What the address says after its question mark, and how it is changed; undefined takes a word away. */
export function useWords<T extends Search>(): [Partial<T>, (change: Partial<T>, replace?: boolean) => void] {
  const [search, change] = useSearchState<T>()
  return [search, (words, replace = false) => change(words, { replace })]
}

export function usePathIds(): { project: string; task: string } {
  const { project_id = '', task_id = '' } = useParams({ strict: false })
  return { project: project_id, task: task_id }
}
