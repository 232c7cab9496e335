import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { ChevronsUpDown } from 'lucide-react'
import { projectQuery, projectsQuery } from '../api/queries.ts'
import { paths } from '../paths.ts'
import { Button } from '../ui/button.tsx'
import { Menu, MenuLink } from '../ui/menu.tsx'

/** The project that is open, and the others. */
export function ProjectSwitcher({ project_id }: { project_id: string | undefined }) {
  const { data: projects } = useQuery(projectsQuery)
  const { data: current } = useQuery({ ...projectQuery(project_id ?? ''), enabled: project_id !== undefined })
  return (
    <Menu
      align="start"
      trigger={
        <Button
          kind="ghost"
          className="max-w-60"
          aria-label={`Project: ${current?.name ?? 'Choose a project'}. Change it`}
        >
          <span className="truncate font-medium text-text">{current?.name ?? 'Choose a project'}</span>
          <ChevronsUpDown size={14} aria-hidden />
        </Button>
      }
    >
      {projects?.items.map(({ id, name }) => (
        <MenuLink key={id} render={<Link {...paths.home(String(id))} />}>
          <span className="max-w-72 truncate">{name}</span>
        </MenuLink>
      ))}
      <MenuLink render={<Link {...paths.projects()} />}>All projects…</MenuLink>
    </Menu>
  )
}
