import { useQuery } from '@tanstack/react-query'
import { Outlet } from '@tanstack/react-router'
import { useEffect } from 'react'
import { LiveProvider } from '../api/live.tsx'
import { NotFoundError } from '#sdk/errors.ts'
import { projectQuery, useProjectId } from '../api/queries.ts'
import { paths } from '../paths.ts'
import { ButtonLink } from '../ui/button.tsx'
import { LiveBadge } from './live-badge.tsx'
import { Missing } from '../ui/empty-state.tsx'

export const lastProjectKey = 'cadre.project'

/** Everything below one project that there is: its stream, and that it is the one to come back to. */
export function ProjectScope() {
  const project_id = useProjectId()
  const { data, error, refetch } = useQuery(projectQuery(project_id))
  const isThere = data !== undefined
  useEffect(() => {
    if (isThere) localStorage.setItem(lastProjectKey, project_id)
  }, [project_id, isThere])
  if (error instanceof NotFoundError)
    return (
      <Missing
        noun="Project"
        reason="It may have been deleted, or belong to another organization."
        error={error}
        retry={() => void refetch()}
        back={<ButtonLink {...paths.projects()}>All projects</ButtonLink>}
      />
    )
  return (
    <LiveProvider key={project_id} project_id={project_id}>
      <LiveBadge />
      <Outlet />
    </LiveProvider>
  )
}
