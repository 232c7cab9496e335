import { Outlet } from '@tanstack/react-router'
import { useEffect } from 'react'
import { LiveProvider } from '../api/live.tsx'
import { useProjectId } from '../api/queries.ts'

export const lastProjectKey = 'cadre.project'

/** Everything below one project: its stream, and that it is the one to come back to. */
export function ProjectScope() {
  const project_id = useProjectId()
  useEffect(() => localStorage.setItem(lastProjectKey, project_id), [project_id])
  return (
    <LiveProvider key={project_id} project_id={project_id}>
      <Outlet />
    </LiveProvider>
  )
}
