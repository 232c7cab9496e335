import { formatCount } from '../../format.ts'
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { Download } from 'lucide-react'
import { useState } from 'react'
import { paths } from '../../paths.ts'
import { Button, ButtonLink } from '../../ui/button.tsx'
import { CopyAsCurl } from '../../ui/copy-as-curl.tsx'
import { card } from '../../ui/data-table.tsx'
import { EmptyState } from '../../ui/empty-state.tsx'
import { ErrorBox } from '../../ui/error-box.tsx'
import { PageHeader, Panel } from '../../ui/page.tsx'
import { Pager } from '../../ui/pager.tsx'
import { saveFile } from '../../ui/save-file.ts'
import { usePathIds } from '../../task-parts/links.tsx'
import { TaskBulkBar, useTaskBulk } from './task-bulk.tsx'
import { TaskFilterBar } from './task-filter-bar.tsx'
import { anyTask, useTaskFilter } from './task-filter.ts'
import { TaskTable } from './task-table.tsx'
import { useAgentNames } from '../../agents/agent-names.ts'

const pageSize = 50
/** Tasks that an export holds at most. */
const exportMost = 10_000

/** The tasks of a project, live, to be filtered, canceled and retried. */
export function TasksPage() {
  const { project } = usePathIds()
  const filter = useTaskFilter(project)
  const [isExporting, setExporting] = useState(false)
  const [exportError, setExportError] = useState<unknown>()
  const list = useQuery({
    queryKey: ['project', project, 'tasks', filter.agent, filter.query, filter.offset],
    queryFn: () => filter.read({ limit: pageSize, offset: filter.offset }).page(),
    placeholderData: keepPreviousData,
  })
  const tasks = list.data?.items ?? []
  const names = useAgentNames(
    project,
    tasks.map(({ agent_id }) => agent_id),
  )
  const bulk = useTaskBulk(project, tasks)
  const isEmpty = list.data?.total === 0 && !filter.isFiltered

  async function exportAll(): Promise<void> {
    setExporting(true)
    setExportError(undefined)
    try {
      const found = await filter.read({ limit: 100 }).toArray({ max: exportMost })
      saveFile(
        'tasks.ndjson',
        'application/x-ndjson',
        found.map((task) => `${JSON.stringify(task)}\n`),
      )
    } catch (error) {
      setExportError(error)
    } finally {
      setExporting(false)
    }
  }
  return (
    <>
      <PageHeader
        title="Tasks"
        actions={
          <>
            <CopyAsCurl path={filter.path} query={filter.query} />
            <Button
              onClick={() => void exportAll()}
              title={`As NDJSON, the first ${formatCount(exportMost)} at most`}
              reason={isExporting ? 'Loading' : tasks.length === 0 ? 'There is nothing to export' : undefined}
            >
              <Download size={14} aria-hidden /> {isExporting ? 'Exporting…' : 'Export'}
            </Button>
          </>
        }
      />
      {!isEmpty && (
        <>
          <TaskFilterBar project={project} filter={filter} />
          <TaskBulkBar project={project} bulk={bulk} tasks={tasks} />
        </>
      )}
      <ErrorBox error={list.error ?? exportError} retry={() => void list.refetch()} />
      {isEmpty && (
        <Panel>
          <EmptyState
            title="No tasks yet"
            command={'cadre tasks run <agent> "Hello, agent"'}
            actions={
              <ButtonLink kind="primary" {...paths.playground(project)}>
                Open the playground
              </ButtonLink>
            }
          >
            <p>
              A task is one piece of work for an agent. It is stored before the API responds, so it survives crashes.
            </p>
          </EmptyState>
        </Panel>
      )}
      {list.data && tasks.length === 0 && filter.isFiltered && (
        <EmptyState
          title="No matching tasks"
          actions={<Button onClick={() => filter.choose(anyTask)}>Show all tasks</Button>}
        />
      )}
      {list.data && list.data.total > 0 && (
        <div className={card}>
          {tasks.length > 0 && (
            <TaskTable
              project={project}
              tasks={tasks}
              names={names}
              bulk={bulk}
              isOldestFirst={filter.isOldestFirst}
              isBusy={list.isFetching}
            />
          )}
          <Pager offset={filter.offset} limit={pageSize} total={list.data.total} go={filter.go} noun="tasks" />
        </div>
      )}
    </>
  )
}
