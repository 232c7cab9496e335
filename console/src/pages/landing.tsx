import { useQuery } from '@tanstack/react-query'
import { Navigate } from '@tanstack/react-router'
import { projectsQuery } from '../api/queries.ts'
import { paths } from '../paths.ts'
import { lastProjectKey } from '../shell/project-scope.tsx'
import { ErrorBox } from '../ui/error-box.tsx'
import { Skeleton } from '../ui/skeleton.tsx'

/** `/`: the project that was open last, else the first one; the list of projects where there is none. */
export default function Landing() {
  const { data, error, refetch } = useQuery(projectsQuery)
  if (error) return <ErrorBox error={error} retry={() => void refetch()} />
  if (!data) return <Skeleton />
  const last = localStorage.getItem(lastProjectKey)
  const project = data.items.find(({ id }) => String(id) === last) ?? data.items[0]
  return <Navigate {...(project ? paths.home(String(project.id)) : paths.projects())} replace />
}
