import { useVirtualizer } from '@tanstack/react-virtual'
import { Link } from '@tanstack/react-router'
import { Bot, ChevronRight, CircleAlert, MessageSquareText, Settings2, User } from 'lucide-react'
import { useEffect, useMemo, useRef, useState, type ReactNode } from 'react'
import { CodeBlock, CopyButton } from '../../ui/copy.tsx'
import { adviceFor } from './advice.ts'
import { DataTree } from '../../ui/texts/data-tree.tsx'
import { Answer } from '../../task-parts/answer.tsx'
import { CancelReceipt } from './cancel-receipt.tsx'
import { formatCost, formatDuration, stepDuration_ms, totalTokens } from '../../format.ts'
import { Time } from '../../ui/time.tsx'
import type { TaskLive } from './task-live.ts'
import { Artifacts, InputFiles, StepFiles } from '../../task-parts/files.tsx'
import { messagesOf } from '../../task-parts/input-text.ts'
import { Prose } from '../../task-parts/prose.tsx'
import { ReasoningSummary } from './reasoning-summary.tsx'
import { compactionWords, stepTitle } from '../../task-parts/step-labels.ts'
import { TaskOutput } from './task-output.tsx'
import { FollowBar, StepIcon } from '../../task-parts/task-parts.tsx'
import type { CompactionOutput, ModelOutput, Step, Task, ToolInput } from '../../task-parts/types.ts'
import { useFollow } from '../../task-parts/use-follow.ts'
import { textOf } from '../../task-parts/value-view.tsx'

/** Characters of a text that a transcript shows; all of it is in the inspector. */
const shown = 6000

type Entry = { kind: 'answer' } | { kind: 'input' } | { kind: 'step'; index: number } | { kind: 'writing' }

/** A task as a conversation. One that has ended begins with its answer, and the way there is below; one that goes on is followed at its end. */
export function Transcript({
  live,
  only,
  selected,
  onSelect,
}: {
  live: TaskLive
  only: number[] | undefined
  selected: number | undefined
  onSelect: (index: number) => void
}) {
  const scroller = useRef<HTMLDivElement>(null)
  const { task, stepCount, writing } = live
  const steps = only ? only.length : stepCount
  const isFinished = task !== undefined && task.finished_at !== null
  const tail: Entry[] = !only && !isFinished && writing ? [{ kind: 'writing' }] : []
  const heads: Entry[] = only ? [] : isFinished ? [{ kind: 'answer' }, { kind: 'input' }] : [{ kind: 'input' }]
  const head = heads.length
  const count = head + steps + tail.length
  const entryAt = (row: number): Entry => {
    const first = heads[row]
    if (first) return first
    if (row >= head + steps) return tail[row - head - steps] ?? { kind: 'writing' }
    const index = row - head
    return { kind: 'step', index: only ? (only[index] ?? 0) : index }
  }
  const rows = useVirtualizer({
    count,
    getScrollElement: () => scroller.current,
    estimateSize: () => 84,
    overscan: 6,
    getItemKey: (row) => {
      const entry = entryAt(row)
      return entry.kind === 'step' ? entry.index : entry.kind
    },
  })
  const toEnd = () => rows.scrollToIndex(count - 1, { align: 'end' })
  // What is being written grows, too: its length is part of what is followed.
  const follow = useFollow(scroller, count + (writing ? writing.text.length / 1e6 : 0), toEnd, !only && !isFinished)
  const items = rows.getVirtualItems()
  const first = items[0]?.index ?? 0
  const last = items.at(-1)?.index ?? 0
  useEffect(() => {
    if (!only && stepCount > 0) live.needSteps(Math.max(0, first - head), Math.max(0, Math.min(stepCount - 1, last)))
  }, [live, only, first, last, stepCount, head])

  return (
    <div className="relative flex min-h-0 flex-1 flex-col">
      <div
        ref={scroller}
        onScroll={follow.onScroll}
        tabIndex={0}
        role="region"
        aria-label="Transcript"
        className="min-h-0 flex-1 overflow-y-auto"
      >
        <ol className="relative mx-auto max-w-4xl" style={{ height: rows.getTotalSize() }} aria-busy={!isFinished}>
          {items.map(({ index: row, start, key }) => {
            const entry = entryAt(row)
            return (
              <li
                key={key}
                data-index={row}
                ref={rows.measureElement}
                aria-setsize={count}
                aria-posinset={row + 1}
                className="absolute inset-x-0 top-0 px-3 py-1.5 md:px-5"
                style={{ transform: `translateY(${start}px)` }}
              >
                {entry.kind === 'input' && task && <Input task={task} />}
                {entry.kind === 'answer' && task && <End task={task} live={live} />}
                {entry.kind === 'writing' && writing && (
                  <Said heading="Writing…" text={writing.text} thought={writing.reasoning} />
                )}
                {entry.kind === 'step' && (
                  <StepEntry
                    project_id={live.project}
                    step={live.steps.get(entry.index)}
                    index={entry.index}
                    taskError={task?.error?.message}
                    isSelected={entry.index === selected}
                    onSelect={onSelect}
                  />
                )}
              </li>
            )
          })}
        </ol>
      </div>
      {!isFinished && !only && <FollowBar follow={{ ...follow, missed: Math.floor(follow.missed) }} unit="step" />}
    </div>
  )
}

function Input({ task }: { task: Task }) {
  const { input } = task
  const messages = typeof input === 'string' ? [{ role: 'user', text: input }] : messagesOf(input)
  if (!messages)
    return (
      <div className="mb-2">
        <p className="mb-1 flex items-center gap-1.5 text-xs font-medium text-soft">
          <User size={14} aria-hidden="true" /> input
        </p>
        <DataTree label="Input" value={input} />
      </div>
    )
  return (
    <>
      {messages.map(({ role, text }, i) => (
        <Turn key={i} role={role}>
          <p className="text-sm whitespace-pre-wrap break-words">{cut(text)}</p>
        </Turn>
      ))}
      <InputFiles task={task} />
    </>
  )
}

const roles: Record<string, { icon: typeof User; label: string; shape: string }> = {
  user: { icon: User, label: 'User', shape: 'bg-accent-soft md:ml-16' },
  assistant: { icon: Bot, label: 'Assistant', shape: 'border border-line bg-panel md:mr-16' },
  system: { icon: Settings2, label: 'System', shape: 'border border-dashed border-edge bg-quiet' },
}

/** What one side of a conversation said. */
function Turn({ role, children }: { role: string; children: ReactNode }) {
  const { icon: Icon, label, shape } = roles[role] ?? { ...roles['system']!, label: role }
  return (
    <div className={`mb-2 rounded-lg px-4 py-3 ${shape}`} data-role={role}>
      <p className="mb-1 flex items-center gap-1.5 text-xs font-medium text-soft">
        <Icon size={14} aria-hidden="true" /> {label}
      </p>
      {children}
    </div>
  )
}

function cut(text: string): string {
  return text.length > shown ? `${text.slice(0, shown)}…` : text
}

function Said({ heading, text, thought }: { heading: string; text: string; thought?: string }) {
  return (
    <div className="text-sm">
      <p className="text-xs text-soft">{heading}</p>
      {thought && <p className="border-l-2 border-line pl-3 text-soft whitespace-pre-wrap italic">{cut(thought)}</p>}
      <Answer text={cut(text)} />
    </div>
  )
}

function StepEntry({
  project_id,
  step,
  index,
  taskError,
  isSelected,
  onSelect,
}: {
  project_id: string
  step: Step | undefined
  index: number
  /** What the answer says already. */
  taskError: string | undefined
  isSelected: boolean
  onSelect: (index: number) => void
}) {
  const model = useMemo(() => (step?.type === 'model_call' ? ((step.output ?? {}) as ModelOutput) : undefined), [step])
  if (!step) return <p className="py-3 text-xs text-soft">Step {index} is being read…</p>
  const error = step.error && step.error.message !== taskError ? step.error : undefined
  const facts = (
    <span className="ml-auto shrink-0 font-mono text-xs whitespace-nowrap text-soft tabular-nums">
      {/* The name is what a narrow line is read by; the inspector has the rest. */}
      {step.usage && (
        <span className="@max-xs:hidden">
          {totalTokens(step.usage)} · {formatCost(step.usage.cost_usd as number | null)} ·{' '}
        </span>
      )}
      {formatDuration(stepDuration_ms(step))}
    </span>
  )
  const isTool = step.type !== 'model_call' && step.type !== 'compaction'
  return (
    <div
      data-role={isTool ? 'tool' : 'assistant'}
      className={`@container rounded-lg border px-3 py-1.5 ${isSelected ? 'border-accent' : isTool ? 'border-transparent' : 'border-line bg-panel md:mr-16'}`}
    >
      <button
        type="button"
        onClick={() => onSelect(index)}
        aria-pressed={isSelected}
        className="flex min-h-7 w-full cursor-pointer items-center gap-2 rounded text-left text-xs text-soft hover:bg-quiet"
      >
        <StepIcon step={step} />
        <span className="min-w-0 truncate font-medium text-text">{stepTitle(step)}</span>
        {isTool ? (
          <CallLine step={step} />
        ) : (
          <Time at={step.started_at} form="clock" className="whitespace-nowrap @max-sm:hidden" />
        )}
        {facts}
        <ChevronRight size={14} aria-hidden="true" className="shrink-0" />
      </button>
      {model?.reasoning_summary && (
        <div className="mt-1">
          <ReasoningSummary text={cut(model.reasoning_summary)} />
        </div>
      )}
      {model?.text && (
        <div className="mt-1 mb-1 text-sm">
          <Answer text={cut(model.text)} />
        </div>
      )}
      {step.type === 'compaction' && <CompactionLines step={step} />}
      {isTool && <ToolLines step={step} />}
      {isTool && <StepFiles project_id={project_id} output={step.output} />}
      {error && (
        <p className="mt-1 text-sm text-bad">
          {error.message} <code className="text-xs">{error.code}</code>
        </p>
      )}
    </div>
  )
}

const outputOf = (step: Step): unknown => (step.output as { content?: unknown } | null)?.content

/** A call of a tool in one line: what it was called with, and what came of it. */
function CallLine({ step }: { step: Step }) {
  const line = (value: unknown): string => textOf(value).replaceAll(/\s+/g, ' ').slice(0, 200)
  const output = outputOf(step)
  return (
    <span className="min-w-0 flex-1 truncate font-mono text-xs">
      {line(((step.input ?? {}) as ToolInput).arguments ?? {})}
      {output !== undefined && <span className="text-text"> → {line(output)}</span>}
    </span>
  )
}

/** The same in full, once it is opened: trees of what went in and what came out, and code as code. */
function ToolLines({ step }: { step: Step }) {
  const [isOpen, setOpen] = useState(false)
  const args = ((step.input ?? {}) as ToolInput).arguments ?? {}
  const code = isCode(args) ? args.code : undefined
  const output = outputOf(step)
  return (
    <details open={isOpen} onToggle={({ currentTarget }) => setOpen(currentTarget.open)} className="ml-6 text-sm">
      <summary className="min-h-6 w-fit cursor-pointer text-xs text-soft">Arguments and result</summary>
      {isOpen && (
        <div className="grid grid-cols-1 gap-3 py-1 lg:grid-cols-2">
          <div className="min-w-0">
            <p className="mb-1 text-xs font-medium text-soft">Arguments</p>
            {code === undefined ? (
              <DataTree label={`Arguments of ${step.name}`} value={args} />
            ) : (
              <CodeBlock text={code} label="Copy the code" />
            )}
          </div>
          <div className="min-w-0">
            <p className="mb-1 text-xs font-medium text-soft">Result</p>
            {output === undefined ? (
              <p className="text-soft">{step.error ? step.error.message : 'None yet'}</p>
            ) : (
              <DataTree label={`Result of ${step.name}`} value={parsed(output)} />
            )}
          </div>
        </div>
      )}
    </details>
  )
}

/** Arguments that are a program and nothing else. */
function isCode(value: unknown): value is { code: string } {
  return (
    typeof value === 'object' &&
    value !== null &&
    Object.keys(value).join() === 'code' &&
    typeof (value as { code: unknown }).code === 'string'
  )
}

/** Text that is JSON as what it stands for. */
function parsed(value: unknown): unknown {
  if (typeof value !== 'string' || !/^\s*[[{]/.test(value) || value.length > 200_000) return value
  try {
    return JSON.parse(value)
  } catch {
    return value
  }
}

/** What a compaction replaced, and by what. */
function CompactionLines({ step }: { step: Step }) {
  const { summary } = (step.output ?? {}) as CompactionOutput
  return (
    <div className="mt-1 space-y-1 text-sm">
      <p className="text-soft">{compactionWords(step)}</p>
      {summary !== undefined && summary !== '' && (
        <details>
          <summary className="min-h-6 w-fit cursor-pointer text-soft">Summary</summary>
          <div className="mt-1 border-l-2 border-line pl-3">
            <Prose text={cut(summary)} />
          </div>
        </details>
      )}
    </div>
  )
}

const ends: Partial<Record<Task['status'], string>> = {
  completed: 'The task is completed.',
  failed: 'The task failed.',
  canceled: 'The task was canceled.',
}

/** What came of a task that has ended: its answer, or why there is none and what can be done. */
function End({ task, live }: { task: Task; live: TaskLive }) {
  const model = [...live.steps.values()].findLast(({ type }) => type === 'model_call')?.name
  const advice = adviceFor(task, model)
  const isBad = task.status === 'failed' || task.status === 'expired'
  const text =
    task.output && (task.output.data === null || task.output.data === undefined) ? textOf(task.output.content) : ''
  return (
    <section
      aria-label="Answer"
      className={`mt-2 mb-4 rounded-lg border bg-panel ${isBad ? 'border-bad' : 'border-line'}`}
    >
      <header className="flex min-h-10 items-center gap-2 border-b border-line px-4 text-sm font-medium">
        {isBad ? (
          <CircleAlert size={15} aria-hidden className="text-bad" />
        ) : (
          <MessageSquareText size={15} aria-hidden className="text-soft" />
        )}
        {ends[task.status] ?? 'The task expired.'}
        {text !== '' && (
          <span className="ml-auto">
            <CopyButton text={text} label="Copy the answer" />
          </span>
        )}
      </header>
      <div className="space-y-3 px-4 py-3">
        {task.error && (
          <div className="text-sm">
            <p className="break-words text-bad">
              {task.error.message} <code className="text-xs">{task.error.code}</code>
            </p>
            {advice && (
              <p className="mt-2">
                <strong>What to do:</strong> {advice.text}{' '}
                {advice.link && <Link {...advice.link.to}>{advice.link.label}</Link>}
              </p>
            )}
          </div>
        )}
        {!task.error && advice && isBad && (
          <p className="text-sm">
            <strong>What to do:</strong> {advice.text}{' '}
            {advice.link && <Link {...advice.link.to}>{advice.link.label}</Link>}
          </p>
        )}
        {task.status === 'canceled' && <CancelReceipt live={live} />}
        {text !== '' && (
          <div className="text-sm">
            <Answer text={cut(text)} />
          </div>
        )}
        <TaskOutput output={task.output} />
        <Artifacts task={task} />
        {task.status === 'completed' && text === '' && task.output === null && (
          <p className="text-sm text-soft">It has no answer.</p>
        )}
      </div>
      <p className="border-t border-line px-4 py-2 text-xs text-soft">The steps are below.</p>
    </section>
  )
}
