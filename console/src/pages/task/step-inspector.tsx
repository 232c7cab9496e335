import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { Link as LinkIcon, RotateCcw, X } from 'lucide-react'
import { useEffect } from 'react'
import { api } from '../../api/client.ts'
import { paths } from '../../paths.ts'
import {
  clockTime,
  exactTime,
  formatCost,
  formatDuration,
  formatTokens,
  stepDuration_ms,
  asText,
  plural,
} from '../../format.ts'
import { Button } from '../../ui/button.tsx'
import { CopyButton, CopyId } from '../../ui/copy.tsx'
import { ErrorBox } from '../../ui/error-box.tsx'
import type { TaskLive } from './task-live.ts'
import { StepIcon } from '../../task-parts/task-parts.tsx'
import { ReasoningSummary } from './reasoning-summary.tsx'
import { compactionWords, stepTitle } from '../../task-parts/step-labels.ts'
import type { CompactionOutput, ModelOutput, Step, ToolInput } from '../../task-parts/types.ts'
import { ValueView } from '../../task-parts/value-view.tsx'
import { usePreference } from '../../preferences.ts'

/** Everything that is known of one step. */
export function StepInspector({
  live,
  index,
  retryReason,
  onRetry,
  onClose,
}: {
  live: TaskLive
  index: number
  /** Why the task cannot be retried from here; undefined where it can. */
  retryReason: string | undefined
  onRetry: () => void
  onClose: () => void
}) {
  const step = live.steps.get(index)
  useEffect(() => {
    live.needSteps(index, index)
  }, [live, index, live.stepCount])
  useEffect(() => {
    const close = (event: KeyboardEvent): void => {
      if (event.key === 'Escape' && !event.defaultPrevented) onClose()
    }
    window.addEventListener('keydown', close)
    return () => window.removeEventListener('keydown', close)
  }, [onClose])

  return (
    <aside
      aria-label={`Step ${index}`}
      className="fixed inset-x-0 top-12 bottom-0 z-20 flex flex-col overflow-y-auto bg-page md:relative md:top-auto md:z-auto md:w-[26rem] md:shrink-0 md:border-l md:border-line lg:w-[32rem]"
      tabIndex={0}
    >
      <header className="sticky top-0 flex items-center gap-2 border-b border-line bg-page px-4 py-2">
        {step && <StepIcon step={step} />}
        <h2 className="min-w-0 truncate font-semibold">{step ? stepTitle(step) : `Step ${index}`}</h2>
        <span className="text-xs whitespace-nowrap text-soft">step {index}</span>
        <Button kind="ghost" size="small" className="ml-auto" aria-label="Close the step" onClick={onClose}>
          <X size={16} aria-hidden="true" />
        </Button>
      </header>
      {!step ? (
        <p className="p-4 text-sm text-soft">
          {index >= live.stepCount ? 'The task has no such step.' : 'Loading the step…'}
        </p>
      ) : (
        <div className="space-y-5 p-4">
          <div className="flex flex-wrap gap-2">
            <Button size="small" onClick={onRetry} reason={retryReason}>
              <RotateCcw size={13} aria-hidden="true" /> Retry from this step
            </Button>
            <span className="inline-flex items-center text-xs text-soft">
              <LinkIcon size={13} aria-hidden="true" className="mr-1" /> Link to this step
              <CopyButton text={() => window.location.href} label="Copy the link to this step" />
            </span>
          </div>
          <Facts step={step} />
          {step.error && (
            <section>
              <Heading>Error</Heading>
              <ErrorBox error={new Error(`${step.error.message} (${step.error.code})`)} />
            </section>
          )}
          <Content step={step} />
          <StepLogs live={live} step={step} />
        </div>
      )}
    </aside>
  )
}

function Heading({ children }: { children: string }) {
  return <h3 className="mb-1 text-xs font-semibold tracking-wide text-soft uppercase">{children}</h3>
}

function Facts({ step }: { step: Step }) {
  const [zone] = usePreference('time_zone')
  const isCompaction = step.type === 'compaction'
  const usage = step.usage as Record<string, number | null> | null
  const facts: [string, string][] = [
    ['Kind', asText(step.type)],
    // What others are called by.
    ...(isCompaction ? [['Model', step.name] as [string, string]] : []),
    ['State', step.status === 'started' ? 'running' : step.status],
    ['Started', exactTime(step.started_at, zone)],
    ['Duration', `${formatDuration(stepDuration_ms(step))}${step.finished_at === null ? ' so far' : ''}`],
    ['Attempts', String(step.attempt)],
  ]
  if (usage) {
    const tokens = formatTokens(usage)
    facts.push(['Tokens in', tokens.in], ['Tokens out', tokens.out], ['Cost', formatCost(usage.cost_usd)])
  }
  const { safety } = (step.input ?? {}) as ToolInput
  if (safety)
    facts.push(['After a crash', { safe: 'repeated', keyed: 'repeated with its key' }[safety] ?? 'a person is asked'])
  return (
    <>
      <dl className="grid grid-cols-[7rem_1fr] gap-y-1 text-sm">
        {facts.map(([name, value]) => (
          <div key={name} className="contents">
            <dt className="text-soft">{name}</dt>
            <dd className="tabular-nums">{value}</dd>
          </div>
        ))}
      </dl>
      <CopyId id={step.id} />
    </>
  )
}

function messagesRead({ input }: Step): string {
  const count = (input as { messages?: number } | null)?.messages ?? 0
  return `${plural(count, 'message')} of the conversation so far`
}

function Content({ step }: { step: Step }) {
  if (step.type === 'model_call') {
    const { text, tool_calls = [], finish_reason, reasoning_summary } = (step.output ?? {}) as ModelOutput
    return (
      <>
        <section>
          <Heading>Input</Heading>
          <p className="text-sm">{messagesRead(step)}</p>
        </section>
        {reasoning_summary && <ReasoningSummary text={reasoning_summary} />}
        <section>
          <Heading>Output</Heading>
          <ValueView label="Output" value={text} />
        </section>
        {tool_calls.length > 0 && (
          <section>
            <Heading>Tool calls</Heading>
            <ValueView label="Calls" value={tool_calls} />
          </section>
        )}
        {finish_reason && <p className="text-xs text-soft">Stop reason {asText(finish_reason)}.</p>}
      </>
    )
  }
  if (step.type === 'compaction') {
    const { summary } = (step.output ?? {}) as CompactionOutput
    return (
      <>
        <p className="text-sm">{compactionWords(step)}</p>
        <section>
          <Heading>Summary</Heading>
          <ValueView label="Summary" value={summary} />
        </section>
      </>
    )
  }
  const input = (step.input ?? {}) as ToolInput
  const output = step.output as { content?: unknown } | null
  return (
    <>
      <section>
        <Heading>Input</Heading>
        <ValueView label="Input" value={input.arguments ?? step.input} />
      </section>
      <section>
        <Heading>Output</Heading>
        <ValueView label="Output" value={output?.content ?? output} />
      </section>
    </>
  )
}

/** Log lines that are shown of a step; all are in Logs. */
const shownLines = 20

/** What the agent logged while the step ran: lines have no step, so those of the same time stand for it. */
function StepLogs({ live, step }: { live: TaskLive; step: Step }) {
  const [zone] = usePreference('time_zone')
  const { data, error } = useQuery({
    queryKey: ['project', live.project, 'tasks', live.id, 'logs of step', step.index, step.finished_at],
    queryFn: () =>
      api.projects
        .logs(live.project, {
          task_id: live.id,
          start_time: step.started_at,
          ...(step.finished_at === null ? {} : { end_time: step.finished_at }),
          limit: shownLines,
        })
        .page(),
  })
  return (
    <section>
      <Heading>Logs</Heading>
      <ErrorBox error={error} />
      {data?.total === 0 && <p className="text-sm text-soft">Nothing was logged during this step.</p>}
      <ul className="font-mono text-xs">
        {data?.items.map((line, at) => (
          <li key={at} className="flex gap-2 py-0.5">
            <span className="shrink-0 text-soft tabular-nums">{clockTime(line.timestamp, zone)}</span>
            <span className={line.level === 'error' ? 'text-bad' : line.level === 'warn' ? 'text-warn' : 'text-soft'}>
              {line.level}
            </span>
            <span className="min-w-0 break-words">{line.message}</span>
          </li>
        ))}
      </ul>
      {data !== undefined && data.total > 0 && (
        <p className="mt-1 text-sm">
          <Link {...paths.logs(live.project, { task: live.id })}>All log lines of the task</Link>
        </p>
      )}
    </section>
  )
}
