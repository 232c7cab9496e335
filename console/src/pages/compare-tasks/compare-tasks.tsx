import { versionWords } from '../../agents/version-text.ts'
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useAgentNames } from '../../agents/agent-names.ts'
import { api } from '../../api/client.ts'
import { useProjectId } from '../../api/queries.ts'
import { formatCost, formatCount, formatDuration, formatShort, stepDuration_ms } from '../../format.ts'
import { paths } from '../../paths.ts'
import { useSearchText } from '../../search-state.ts'
import { Answer } from '../../task-parts/answer.tsx'
import { loadMarkdown } from '../../task-parts/prose.tsx'
import { inputText, titleOf } from '../../task-parts/input-text.ts'
import { stepTitle } from '../../task-parts/step-labels.ts'
import { StepIcon, TaskBadge } from '../../task-parts/task-parts.tsx'
import type { Step, Task } from '../../task-parts/types.ts'
import { textOf } from '../../task-parts/value-view.tsx'
import { CopyAsCurl } from '../../ui/copy-as-curl.tsx'
import { EmptyState } from '../../ui/empty-state.tsx'
import { ErrorBox } from '../../ui/error-box.tsx'
import { TextDiff } from '../../ui/texts/numbered-text.tsx'
import { PageHeader, Panel } from '../../ui/page.tsx'
import { Skeleton, WhenSettled } from '../../ui/skeleton.tsx'
import { Time } from '../../ui/time.tsx'

/** Steps of each task that are read. */
const compared = 100
/** Characters of a text that both have. */
const shownMax = 4000

type Side = { task: Task; steps: readonly Step[] }

/** Two tasks side by side: what they took, what differs between their inputs and answers, and their steps. */
export default function CompareTasksPage() {
  const project = useProjectId()
  const [search] = useSearchText()
  const left = useSide(project, search.left)
  const right = useSide(project, search.right)
  if (search.left === undefined || search.right === undefined)
    return (
      <EmptyState isPage title="Compare two tasks" actions={<Link {...paths.tasks(project)}>Tasks</Link>}>
        <p>Open a task, and choose “Compare with another task” in its menu.</p>
      </EmptyState>
    )
  const error = left.error ?? right.error
  if (error) return <ErrorBox error={error} />
  if (!left.data || !right.data) return <Skeleton rows={10} />
  const sides = [left.data, right.data] as const
  const [a, b] = sides
  return (
    <>
      <PageHeader
        title="Compare tasks"
        parent={<Link {...paths.tasks(project)}>Tasks</Link>}
        actions={<CopyAsCurl path={`/api/v1/projects/${project}/tasks/${a.task.id}`} />}
      />
      <WhenSettled skeleton={<Skeleton rows={10} />}>
        <div className="mb-4 grid grid-cols-1 gap-4 md:grid-cols-2">
          {sides.map((side, at) => (
            <Summary key={at} project={project} side={side} other={sides[1 - at]!} />
          ))}
        </div>
        <div className="space-y-4">
          <Panel title="Input">
            <div className="p-4">
              <Difference
                label="Difference of the inputs"
                before={inputText(a.task.input)}
                after={inputText(b.task.input)}
              />
            </div>
          </Panel>
          <Panel title="Answer">
            <div className="p-4">
              <Difference label="Difference of the answers" before={answerOf(a.task)} after={answerOf(b.task)} />
            </div>
          </Panel>
          <div className="grid grid-cols-1 gap-4 md:grid-cols-2">
            {sides.map(({ task, steps }, at) => (
              <Panel key={at} title={`Steps of the ${at === 0 ? 'first' : 'second'}`}>
                <Steps project={project} task={task} steps={steps} other={sides[1 - at]!.steps} />
              </Panel>
            ))}
          </div>
        </div>
      </WhenSettled>
    </>
  )
}

function useSide(project: string, id: string | undefined) {
  return useQuery({
    queryKey: ['project', project, 'tasks', 'side', id],
    enabled: id !== undefined,
    queryFn: async (): Promise<Side> => {
      const [task, steps] = await Promise.all([
        api.tasks.get(project, id!),
        api.tasks.steps(project, id!, { limit: compared }).page(),
        // Without it, answers are shown as they are written.
        loadMarkdown().catch(() => {}),
      ])
      return { task, steps: steps.items }
    },
  })
}

function answerOf({ output, error }: Task): string {
  if (output) return output.data == null ? textOf(output.content) : JSON.stringify(output.data, null, 2)
  return error ? `${error.message} (${error.code})` : ''
}

function Difference({ label, before, after }: { label: string; before: string; after: string }) {
  if (before === '' && after === '') return <p className="text-soft">Neither task has any.</p>
  if (before === after)
    return (
      <>
        <p className="mb-2 text-soft">Both are the same.</p>
        <Answer text={before.slice(0, shownMax)} />
      </>
    )
  return <TextDiff label={label} before={before} after={after} />
}

function tookOf({ started_at, finished_at }: Task): number | undefined {
  return started_at && finished_at ? Date.parse(finished_at) - Date.parse(started_at) : undefined
}

function Summary({ project, side: { task, steps }, other }: { project: string; side: Side; other: Side }) {
  const names = useAgentNames(project, [task.agent_id])
  const took = tookOf(task)
  const model = steps.find(({ type }) => type === 'model_call')?.name
  const tokens = ({ usage }: Task): number => usage.input_tokens + usage.output_tokens
  const facts: [string, string, boolean][] = [
    ['Duration', took === undefined ? '–' : formatDuration(took), (took ?? 0) > (tookOf(other.task) ?? 0)],
    ['Cost', formatCost(task.usage.cost_usd), (task.usage.cost_usd ?? 0) > (other.task.usage.cost_usd ?? 0)],
    ['Tokens', formatShort(tokens(task)), tokens(task) > tokens(other.task)],
    ['Steps', formatCount(task.usage.steps), task.usage.steps > other.task.usage.steps],
  ]
  return (
    <Panel>
      <div className="space-y-2 p-4">
        <h2 className="!text-base">
          <Link {...paths.task(project, task.id)}>{titleOf(task)}</Link>
        </h2>
        <p className="flex flex-wrap items-center gap-x-3 gap-y-1 text-sm text-soft">
          <TaskBadge task={task} />
          <span>
            <Link {...paths.agent(project, task.agent_id)}>{names.get(task.agent_id) ?? task.agent_id}</Link>{' '}
            {versionWords(task.agent_version)}
          </span>
          {model && <code>{model}</code>}
          <Time at={task.created_at} />
        </p>
        <dl className="grid grid-cols-4 gap-2">
          {facts.map(([name, value, isMore]) => (
            <div key={name}>
              <dt className="text-sm text-soft">{name}</dt>
              <dd className="flex flex-wrap items-baseline gap-x-1 font-semibold tabular-nums">
                <span className="whitespace-nowrap">{value}</span>
                {isMore && <span className="text-xs font-normal text-warn">more</span>}
              </dd>
            </div>
          ))}
        </dl>
      </div>
    </Panel>
  )
}

function Steps({
  project,
  task,
  steps,
  other,
}: {
  project: string
  task: Task
  steps: readonly Step[]
  other: readonly Step[]
}) {
  return (
    <ol>
      {steps.map((step) => {
        const isSame = other[step.index]?.name === step.name && other[step.index]?.status === step.status
        return (
          <li
            key={step.index}
            data-row={step.id}
            className={`border-b border-line last:border-0 ${isSame ? '' : 'bg-warn-soft'}`}
          >
            <Link
              {...paths.task(project, task.id, { step: step.index })}
              className="flex min-h-9 items-center gap-2 px-4 text-text no-underline hover:bg-quiet hover:text-text"
            >
              <StepIcon step={step} />
              <span className="min-w-0 flex-1 truncate">{stepTitle(step)}</span>
              {!isSame && <span className="text-xs text-warn">differs</span>}
              <span className="text-sm text-soft tabular-nums">{formatDuration(stepDuration_ms(step))}</span>
            </Link>
          </li>
        )
      })}
      {steps.length === 0 && <li className="p-4 text-soft">No steps</li>}
    </ol>
  )
}
