import { Link } from '@tanstack/react-router'
import { paths } from '../../paths.ts'
import { card } from '../../ui/data-table.tsx'
import { CopyId } from '../../ui/copy.tsx'
import { formatCost, formatCount, formatDuration } from '../../format.ts'
import { Time } from '../../ui/time.tsx'
import { TaskBadge } from '../../task-parts/task-parts.tsx'
import { TaskTrigger } from '../task/task-trigger.tsx'
import type { Outcome, TaskBulk } from './task-bulk.tsx'
import { titleOf } from '../../task-parts/input-text.ts'
import type { Task } from '../../task-parts/types.ts'

interface TaskTable {
  project: string
  tasks: readonly Task[]
  names: ReadonlyMap<string, string>
  bulk: TaskBulk
  isOldestFirst: boolean
  isBusy: boolean
}

/** Tasks, a row each; on a telephone a card each. */
export function TaskTable({ project, tasks, names, bulk, isOldestFirst, isBusy }: TaskTable) {
  return (
    <div className={`relative overflow-x-auto ${card}`}>
      <table className="rows" aria-busy={isBusy}>
        <thead>
          <tr>
            <th>
              <span className="sr-only">Select</span>
            </th>
            <th className="min-w-40 lg:min-w-56">Task</th>
            <th>State</th>
            <th>Agent</th>
            <th className="max-xl:hidden">Trigger</th>
            <th aria-sort={isOldestFirst ? 'ascending' : 'descending'}>Created</th>
            <th className="number">Duration</th>
            <th className="number max-xl:!hidden">Steps</th>
            <th className="number max-lg:hidden">Tokens</th>
            <th className="number max-lg:hidden">Cost</th>
          </tr>
        </thead>
        <tbody>
          {tasks.map((task) => (
            <Row
              key={task.id}
              project={project}
              task={task}
              agent={names.get(task.agent_id)}
              outcome={bulk.outcomes.get(task.id)}
              isSelected={bulk.selected.has(task.id)}
              toggle={() => bulk.toggle(task.id)}
            />
          ))}
        </tbody>
      </table>
    </div>
  )
}

interface RowProps {
  project: string
  task: Task
  agent: string | undefined
  outcome: Outcome | undefined
  isSelected: boolean
  toggle: () => void
}

function Row({ project, task, agent, outcome, isSelected, toggle }: RowProps) {
  const ended = task.finished_at === null ? Date.now() : Date.parse(task.finished_at)
  return (
    <tr data-row={task.id} data-current={isSelected || undefined}>
      <td className="w-px">
        <label className="inline-flex size-6 cursor-pointer items-center justify-center">
          <input type="checkbox" checked={isSelected} onChange={toggle} aria-label={`Select ${titleOf(task)}`} />
        </label>
      </td>
      <td className="whole w-[40%] max-w-0">
        <Link
          {...paths.task(project, task.id)}
          className="block truncate font-medium text-text no-underline hover:underline"
        >
          {titleOf(task)}
        </Link>
        <CopyId id={task.id} />
        {task.error && <code className="block text-xs text-bad">{task.error.code}</code>}
        {outcome && (
          <span className={`block text-xs ${outcome.isDone ? 'text-good' : 'text-bad'}`}>
            {outcome.text} {outcome.link && <Link {...paths.task(project, outcome.link)}>{outcome.link}</Link>}
          </span>
        )}
      </td>
      <td data-label="State">
        <TaskBadge task={task} />
      </td>
      <td data-label="Agent" className="md:max-w-40 md:truncate md:max-lg:max-w-28" title={agent ?? task.agent_id}>
        <Link {...paths.agent(project, task.agent_id)}>{agent ?? task.agent_id}</Link>
      </td>
      <td data-label="Trigger" className="whitespace-nowrap min-[761px]:max-xl:hidden">
        <TaskTrigger project={project} task={task} />
      </td>
      <td data-label="Created" className="whitespace-nowrap">
        <Time at={task.created_at} />
      </td>
      <td data-label="Duration" className="number whitespace-nowrap">
        {task.started_at === null ? '—' : formatDuration(ended - Date.parse(task.started_at))}
      </td>
      <td data-label="Steps" className="number max-xl:!hidden">
        {formatCount(task.usage.steps)}
      </td>
      <td data-label="Tokens" className="number max-lg:!hidden">
        {formatCount(task.usage.input_tokens + task.usage.output_tokens)}
      </td>
      <td data-label="Cost" className="number min-[761px]:max-lg:hidden">
        {formatCost(task.usage.cost_usd)}
      </td>
    </tr>
  )
}
