import { Link, useParams } from '@tanstack/react-router'
import type { ReactNode } from 'react'

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

export function usePathIds(): { project: string; task: string } {
  const { project_id = '', task_id = '' } = useParams({ strict: false })
  return { project: project_id, task: task_id }
}
