import { formatCount } from '../../format.ts'
import { keepPreviousData, useQuery, useQueryClient } from '@tanstack/react-query'
import { Link, useNavigate } from '@tanstack/react-router'
import { Ellipsis, Plus } from 'lucide-react'
import { api } from '../../api/client.ts'
import { paths } from '../../paths.ts'
import { useSearchState } from '../../search-state.ts'
import { Button, IconButton } from '../../ui/button.tsx'
import { CodeBlock, CopyId } from '../../ui/copy.tsx'
import { CopyAsCurl, curlOf } from '../../ui/copy-as-curl.tsx'
import { DataTable, type Column } from '../../ui/data-table.tsx'
import { ConfirmDialog } from '../../ui/confirm-dialog.tsx'
import { EmptyState } from '../../ui/empty-state.tsx'
import { ErrorBox } from '../../ui/error-box.tsx'
import { SearchInput } from '../../ui/forms/field.tsx'
import { Menu, MenuItem } from '../../ui/menu.tsx'
import { PageHeader, Panel } from '../../ui/page.tsx'
import { Pager } from '../../ui/pager.tsx'
import { Skeleton } from '../../ui/skeleton.tsx'
import { Time } from '../../ui/time.tsx'
import { tell } from '../../ui/toast.tsx'
import { ProjectNameDialog } from './project-name-dialog.tsx'
import type { ProjectStatistics } from '#sdk/types.ts'

const pageSize = 20
type Search = {
  search?: string | number
  sort?: string
  order?: string
  page?: number | string
  panel?: string
  project?: number
}
type Row = { id: number; name: string; statistics?: ProjectStatistics | undefined }

/** The projects of the organization. */
export default function ProjectsPage() {
  const [search, change] = useSearchState<Search>()
  const queries = useQueryClient()
  const navigate = useNavigate()
  const page = Number(search.page ?? 1)
  const sort = search.sort === 'name' ? 'name' : 'created_at'
  const order = search.order === 'asc' ? 'asc' : 'desc'
  const searchText = String(search.search ?? '')
  const query = { limit: pageSize, page, sort, order, ...(searchText ? { search: searchText } : {}) } as const
  const { data, error, refetch } = useQuery({
    queryKey: ['projects', 'list', query],
    queryFn: () => api.projects.list(query).page({ page }),
    placeholderData: keepPreviousData,
  })
  const ids = data?.items.map(({ id }) => id) ?? []
  const statistics = useQuery({
    queryKey: ['projects', 'statistics', ids],
    queryFn: () => api.projects.statistics({ project_ids: ids.join(',') }),
    enabled: ids.length > 0,
    placeholderData: keepPreviousData,
    refetchInterval: 15_000,
  })
  const numbers = new Map(statistics.data?.statistics.map((one) => [one.project_id, one]))
  const rows: Row[] = data?.items.map((row) => ({ ...row, statistics: numbers.get(row.id) })) ?? []
  const meant = rows.find(({ id }) => id === Number(search.project))
  const renaming = search.panel === 'rename' ? meant : undefined
  const deleting = search.panel === 'delete' ? meant : undefined
  const closePanel = () => change({ panel: undefined, project: undefined })
  const refresh = () => queries.invalidateQueries({ queryKey: ['projects'] })
  const isEmpty = data?.total === 0 && searchText === ''
  const columns: Column<Row>[] = [
    {
      id: 'name',
      header: 'Name',
      sort: 'name',
      isWide: true,
      cell: ({ id, name }) => (
        <Link {...paths.home(String(id))} className="font-medium text-text no-underline hover:underline">
          {name}
        </Link>
      ),
    },
    { id: 'agents', header: 'Agents', align: 'right', cell: Agents },
    {
      id: 'running',
      header: 'Running',
      align: 'right',
      cell: ({ statistics }) => (statistics ? formatCount(statistics.agents_running) : '…'),
    },
    {
      id: 'last_activity',
      header: 'Last activity',
      cell: ({ statistics }) => (statistics ? <Time at={statistics.last_activity} /> : '…'),
    },
    { id: 'id', header: 'ID', cell: ({ id }) => <CopyId id={`proj_${id}`} /> },
    { id: 'number', header: 'Number', isExtra: true, sort: 'created_at', cell: ({ id }) => <CopyId id={String(id)} /> },
    {
      id: 'actions',
      header: 'Actions',
      cell: (row) => (
        <Menu
          trigger={
            <IconButton label={`Actions of ${row.name}`}>
              <Ellipsis size={16} aria-hidden />
            </IconButton>
          }
        >
          <MenuItem onClick={() => change({ panel: 'rename', project: row.id })}>Rename</MenuItem>
          <MenuItem
            isDangerous
            reason={row.statistics?.agents ? 'It still has agents' : undefined}
            onClick={() => change({ panel: 'delete', project: row.id })}
          >
            Delete
          </MenuItem>
        </Menu>
      ),
    },
  ]
  return (
    <>
      <PageHeader
        title="Projects"
        actions={
          <>
            <CopyAsCurl path="/api/v1/projects" query={query} />
            {!isEmpty && (
              <Button kind="primary" onClick={() => change({ panel: 'new' })}>
                <Plus size={14} aria-hidden /> New project
              </Button>
            )}
          </>
        }
      >
        A project groups agents with their tools, budgets and history.
      </PageHeader>
      {!isEmpty && (
        <div className="mb-3">
          <SearchInput
            label="Find a project"
            value={searchText}
            onChange={(event) =>
              change({ search: event.target.value || undefined, page: undefined }, { replace: true })
            }
          />
        </div>
      )}
      <ErrorBox error={error ?? statistics.error} retry={() => void Promise.all([refetch(), statistics.refetch()])} />
      <Panel>
        {!data && !error && <Skeleton />}
        {isEmpty && <NoProjects create={() => change({ panel: 'new' })} />}
        {data?.total === 0 && searchText !== '' && <EmptyState title={`No project is called ${searchText}`} />}
        {data && data.items.length > 0 && (
          <>
            <DataTable
              label="Projects"
              columns={columns}
              rows={rows}
              keyOf={({ id }) => String(id)}
              sort={{ by: sort, order, change: (sort, order) => change({ sort, order, page: undefined }) }}
            />
            <Pager
              offset={(page - 1) * pageSize}
              limit={pageSize}
              total={data.total}
              noun="projects"
              go={(offset) => change({ page: offset / pageSize + 1 })}
            />
          </>
        )}
      </Panel>
      {search.panel === 'new' && (
        <ProjectNameDialog
          title="New project"
          action="Create"
          close={() => change({ panel: undefined })}
          save={async (name) => {
            const { id } = await api.projects.create({ name })
            await refresh()
            await navigate(paths.start(String(id)))
          }}
        />
      )}
      {renaming && (
        <ProjectNameDialog
          title={`Rename ${renaming.name}`}
          action="Rename"
          name={renaming.name}
          close={closePanel}
          save={async (name) => {
            await api.projects.update(renaming.id, { name })
            await Promise.all([refresh(), queries.invalidateQueries({ queryKey: ['project', String(renaming.id)] })])
            closePanel()
            tell('Project renamed')
          }}
        />
      )}
      <ConfirmDialog
        isOpen={deleting !== undefined}
        close={closePanel}
        title={`Delete ${deleting?.name}`}
        action="Delete project"
        typed={deleting?.name}
        run={async () => {
          await api.projects.delete(deleting?.id ?? '')
          await refresh()
          tell('Project deleted')
        }}
      >
        <p>Only a project without agents can be deleted. Its number is never used again.</p>
      </ConfirmDialog>
    </>
  )
}

function Agents({ id, statistics }: Row) {
  if (!statistics) return <>…</>
  return <Link {...paths.agents(String(id))}>{formatCount(statistics.agents)}</Link>
}

function NoProjects({ create }: { create: () => void }) {
  return (
    <EmptyState
      title="Start with a project"
      actions={
        <Button kind="primary" onClick={create}>
          Create a project
        </Button>
      }
    >
      <p>A project keeps its agents, tools and tasks separate from other projects. Use one per team or product.</p>
      <div className="text-left">
        <CodeBlock
          text={curlOf('POST', '/api/v1/projects', { body: { name: 'first-project' } })}
          label="Copy the command that creates a project"
        />
      </div>
    </EmptyState>
  )
}
