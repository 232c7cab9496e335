import { useParams } from '@tanstack/react-router'
import { lastProjectKey } from './project-scope.tsx'

/** The project that the page belongs to, else the one that was open last: what the navigation shows, and keys and the menu lead into. */
export function useOpenProject(): string | undefined {
  const { project_id } = useParams({ strict: false })
  return project_id ?? localStorage.getItem(lastProjectKey) ?? undefined
}
