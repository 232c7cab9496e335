import { useMemo } from 'react'
import { diffLines } from './line-diff.ts'

/** A text with the numbers of its lines. */
export function NumberedText({ label, text }: { label: string; text: string }) {
  return (
    <div
      className="max-h-[32rem] overflow-auto py-2 font-mono text-xs leading-5"
      tabIndex={0}
      role="region"
      aria-label={label}
    >
      {text.split('\n').map((line, at) => (
        <div key={at} className="flex">
          <span aria-hidden className="w-12 shrink-0 pr-3 text-right text-soft tabular-nums select-none">
            {at + 1}
          </span>
          <span className="min-w-0 flex-1 pr-4 wrap-anywhere whitespace-pre-wrap">{line || ' '}</span>
        </div>
      ))}
    </div>
  )
}

/** Unchanged lines that are shown around a change. */
const context = 3

const marks = { same: ' ', out: '−', in: '+' } as const
const tones = { same: '', out: 'bg-bad-soft text-bad', in: 'bg-good-soft text-good' } as const

/** What became of a text, line by line; long parts that stayed are left out. */
export function TextDiff({ label, before, after }: { label: string; before: string; after: string }) {
  const lines = useMemo(() => diffLines(before, after), [before, after])
  const isNear = useMemo(() => {
    const near = new Set<number>()
    lines.forEach(({ kind }, at) => {
      if (kind !== 'same') for (let one = at - context; one <= at + context; one++) near.add(one)
    })
    return (at: number): boolean => near.has(at)
  }, [lines])
  if (lines.every(({ kind }) => kind === 'same')) return <p className="text-soft">No differences.</p>
  return (
    <div
      className="max-h-[32rem] overflow-auto rounded-md border border-line py-1 font-mono text-xs leading-5"
      tabIndex={0}
      role="region"
      aria-label={label}
    >
      {lines.map(({ kind, text, before, after }, at) =>
        isNear(at) ? (
          <div key={at} className={`flex ${tones[kind]}`}>
            <span aria-hidden className="w-9 shrink-0 pr-2 text-right tabular-nums opacity-70 select-none">
              {before ?? ''}
            </span>
            <span aria-hidden className="w-9 shrink-0 pr-2 text-right tabular-nums opacity-70 select-none">
              {after ?? ''}
            </span>
            <span className="w-4 shrink-0 select-none">
              <span aria-hidden>{marks[kind]}</span>
              {kind !== 'same' && <span className="sr-only">{kind === 'out' ? 'removed: ' : 'added: '}</span>}
            </span>
            <span className="min-w-0 flex-1 pr-3 wrap-anywhere whitespace-pre-wrap">{text || ' '}</span>
          </div>
        ) : isNear(at - 1) || at === 0 ? (
          <div key={at} className="px-3 text-soft" aria-hidden>
            …
          </div>
        ) : null,
      )}
    </div>
  )
}
