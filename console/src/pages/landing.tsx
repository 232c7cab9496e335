import { useQuery } from '@tanstack/react-query'
import { Navigate } from '@tanstack/react-router'
import { api } from '../api/client.ts'
import { paths } from '../paths.ts'
import { lastProjectKey } from '../shell/project-scope.tsx'
import { ErrorBox } from '../ui/error-box.tsx'
import { Skeleton } from '../ui/skeleton.tsx'

/**
 * `/`: the project that this browser had open last; on another browser the one in which something happened last; the list of projects where
 * there is none.
 */
export default function Landing() {
  const { data, error, refetch } = useQuery({ queryKey: ['projects', 'landing'], queryFn: whereTo })
  if (error) return <ErrorBox error={error} retry={() => void refetch()} />
  if (data === undefined) return <Skeleton />
  return <Navigate {...(data === null ? paths.projects() : paths.home(data))} replace />
}

async function whereTo(): Promise<string | null> {
  const last = localStorage.getItem(lastProjectKey)
  if (last !== null && (await Promise.resolve(api.projects.get(last)).catch(() => undefined))) return last
  const { statistics } = await api.projects.statistics()
  const newest = statistics.toSorted((a, b) => Date.parse(b.last_activity) - Date.parse(a.last_activity))[0]
  return newest ? String(newest.project_id) : null
}
