import { useQuery } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { api } from '../../api/client.ts'
import { paths } from '../../paths.ts'
import { titleOf } from '../../task-parts/input-text.ts'
import { TaskBadge } from '../../task-parts/task-parts.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { SearchInput } from '../../ui/forms/field.tsx'
import { Time } from '../../ui/time.tsx'

/** Tasks that are offered. */
const offered = 8

/** Chooses a task to be seen beside this one. */
export function CompareDialog({ project, task, close }: { project: string; task: string; close: () => void }) {
  const navigate = useNavigate()
  const [text, setText] = useState('')
  const search = text.trim()
  const { data } = useQuery({
    queryKey: ['project', project, 'tasks', 'compare', search],
    queryFn: () => api.tasks.list(project, { limit: offered + 1, ...(search === '' ? {} : { search }) }).page(),
    placeholderData: (before) => before,
  })
  const open = (other: string): void => {
    close()
    void navigate(paths.compareTasks(project, { left: task, right: other }))
  }
  return (
    <Dialog isOpen close={close} title="Compare with another task" throwaway>
      <SearchInput
        label="Part of the input, or task ID"
        className="w-full"
        value={text}
        onChange={({ target }) => setText(target.value)}
        onKeyDown={({ key }) => key === 'Enter' && search.startsWith('task_') && open(search)}
      />
      <ul className="mt-2 min-h-24">
        {data?.items
          .filter(({ id }) => id !== task)
          .slice(0, offered)
          .map((one) => (
            <li key={one.id}>
              <button
                type="button"
                className="flex min-h-9 w-full items-center gap-3 rounded px-2 text-left hover:bg-quiet"
                onClick={() => open(one.id)}
              >
                <TaskBadge task={one} />
                <span className="min-w-0 flex-1 truncate">{titleOf(one)}</span>
                <span className="text-sm text-soft">
                  <Time at={one.created_at} />
                </span>
              </button>
            </li>
          ))}
      </ul>
    </Dialog>
  )
}
