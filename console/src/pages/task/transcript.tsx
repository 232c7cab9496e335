import { useVirtualizer } from '@tanstack/react-virtual'
import { ChevronRight, User } from 'lucide-react'
import { useEffect, useMemo, useRef } from 'react'
import { DataTree } from '../../ui/data-tree.tsx'
import { Answer } from '../../task-parts/answer.tsx'
import { CancelReceipt } from './cancel-receipt.tsx'
import { formatCost, formatDuration, stepDuration_ms } from '../../format.ts'
import { Time } from '../../ui/time.tsx'
import type { TaskLive } from './task-live.ts'
import { Artifacts, InputFiles } from '../../task-parts/files.tsx'
import { messagesOf } from '../../task-parts/input-words.ts'
import { Prose } from '../../task-parts/prose.tsx'
import { ReasoningSummary } from './reasoning-summary.tsx'
import { compactionWords, stepTitle } from '../../task-parts/step-words.ts'
import { TaskOutput } from './task-output.tsx'
import { FollowBar, StepIcon } from '../../task-parts/task-parts.tsx'
import type { CompactionOutput, ModelOutput, Step, Task, ToolInput } from '../../task-parts/types.ts'
import { useFollow } from '../../task-parts/use-follow.ts'
import { textOf } from '../../task-parts/value-view.tsx'

/** Characters of a text that a transcript shows; all of it is in the inspector. */
const shown = 6000

type Entry = { kind: 'input' } | { kind: 'step'; index: number } | { kind: 'writing' } | { kind: 'end' }

/** A task as it reads: what was asked, said and done, the end last. */
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
  const tail: Entry[] = only ? [] : isFinished ? [{ kind: 'end' }] : writing ? [{ kind: 'writing' }] : []
  const head = only ? 0 : 1
  const count = head + steps + tail.length
  const entryAt = (row: number): Entry => {
    if (row < head) return { kind: 'input' }
    if (row >= head + steps) return tail[row - head - steps] ?? { kind: 'end' }
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
  const follow = useFollow(scroller, count + (writing ? writing.text.length / 1e6 : 0), toEnd, !only)
  const items = rows.getVirtualItems()
  const first = items[0]?.index ?? 0
  const last = items.at(-1)?.index ?? 0
  useEffect(() => {
    if (!only && stepCount > 0) live.needSteps(Math.max(0, first - head), Math.min(stepCount - 1, last))
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
                {entry.kind === 'end' && task && <End task={task} live={live} />}
                {entry.kind === 'writing' && writing && (
                  <Said heading="Writing…" text={writing.text} thought={writing.reasoning} />
                )}
                {entry.kind === 'step' && (
                  <StepEntry
                    step={live.steps.get(entry.index)}
                    index={entry.index}
                    writing={writing?.text}
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
        <div key={i} className="mb-2 rounded-lg bg-quiet px-4 py-3">
          <p className="mb-1 flex items-center gap-1.5 text-xs font-medium text-soft">
            <User size={14} aria-hidden="true" /> {role}
          </p>
          <p className="text-sm whitespace-pre-wrap break-words">{cut(text)}</p>
        </div>
      ))}
      <InputFiles task={task} />
    </>
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
  step,
  index,
  isSelected,
  onSelect,
}: {
  step: Step | undefined
  index: number
  writing: string | undefined
  isSelected: boolean
  onSelect: (index: number) => void
}) {
  const model = useMemo(() => (step?.type === 'model_call' ? ((step.output ?? {}) as ModelOutput) : undefined), [step])
  if (!step) return <p className="py-3 text-xs text-soft">Step {index} is being read…</p>
  return (
    <div className={`rounded-lg border px-3 py-2 ${isSelected ? 'border-accent' : 'border-transparent'}`}>
      <button
        type="button"
        onClick={() => onSelect(index)}
        aria-pressed={isSelected}
        className="flex min-h-7 w-full cursor-pointer items-center gap-2 rounded text-left text-xs text-soft hover:bg-quiet"
      >
        <StepIcon step={step} />
        <span className="truncate font-medium text-text">{stepTitle(step)}</span>
        <Time at={step.started_at} form="clock" className="whitespace-nowrap max-sm:hidden" />
        <span className="ml-auto whitespace-nowrap font-mono tabular-nums">
          {step.usage &&
            `${tokensOf(step.usage.output_tokens)} · ${formatCost(step.usage.cost_usd as number | null)} · `}
          {formatDuration(stepDuration_ms(step))}
        </span>
        <ChevronRight size={14} aria-hidden="true" className="shrink-0" />
      </button>
      {model?.reasoning_summary && (
        <div className="mt-1">
          <ReasoningSummary text={cut(model.reasoning_summary)} />
        </div>
      )}
      {model?.text && (
        <div className="mt-1 text-sm">
          <Answer text={cut(model.text)} />
        </div>
      )}
      {step.type === 'compaction' && <CompactionLines step={step} />}
      {step.type !== 'model_call' && step.type !== 'compaction' && <ToolLines step={step} />}
      {step.error && (
        <p className="mt-1 text-sm text-bad">
          {step.error.message} <code className="text-xs">{step.error.code}</code>
        </p>
      )}
    </div>
  )
}

/** A call of a tool in two lines: what it was called with, and what came of it. */
function ToolLines({ step }: { step: Step }) {
  const input = (step.input ?? {}) as ToolInput
  const output = (step.output as { content?: unknown } | null)?.content
  const line = (value: unknown): string => textOf(value).replaceAll(/\s+/g, ' ').slice(0, 300)
  return (
    <dl className="mt-1 grid grid-cols-[auto_1fr] gap-x-3 gap-y-0.5 font-mono text-xs">
      <dt className="text-soft">with</dt>
      <dd className="truncate">{line(input.arguments ?? {})}</dd>
      {output !== undefined && (
        <>
          <dt className="text-soft">gave</dt>
          <dd className="truncate">{line(output)}</dd>
        </>
      )}
    </dl>
  )
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

function tokensOf(count: unknown): string {
  return count === 1 ? '1 token' : `${typeof count === 'number' ? count : 0} tokens`
}

function End({ task, live }: { task: Task; live: TaskLive }) {
  const text = { completed: 'The task is completed.', failed: 'The task failed.', canceled: 'The task was canceled.' }[
    task.status as string
  ]
  return (
    <div className="mt-1 mb-3 border-t border-line pt-2 text-xs text-soft">
      {text ?? 'The task expired.'}
      {task.status === 'canceled' && <CancelReceipt live={live} />}
      {task.error && <p className="mt-1 text-sm text-bad">{`${task.error.message} (${task.error.code})`}</p>}
      <TaskOutput output={task.output} />
      <Artifacts task={task} />
    </div>
  )
}
