import { formatCount } from '../format.ts'
import { useMemo, useState } from 'react'
import { Button } from '../ui/button.tsx'
import { CopyButton } from '../ui/copy.tsx'

/** Characters shown of a value before the user asks for all of it. */
const shown = 4000
/** More than this is never put into a page: it is copied or downloaded. */
const shownMost = 200_000

/** A value as text: JSON in lines, and text that is JSON as well. */
export function textOf(value: unknown): string {
  if (typeof value !== 'string') return JSON.stringify(value, null, 2) ?? ''
  if (!/^\s*[[{]/.test(value) || value.length > shownMost) return value
  try {
    return JSON.stringify(JSON.parse(value), null, 2)
  } catch {
    return value
  }
}

/** A value of any size, cut where it is long. */
export function ValueView({ label, value }: { label: string; value: unknown }) {
  const [isWhole, setWhole] = useState(false)
  const text = useMemo(() => textOf(value), [value])
  if (value === null || value === undefined || text === '') return <p className="text-sm text-soft">None</p>
  const end = isWhole ? shownMost : shown
  return (
    <div className="relative min-w-0">
      <pre
        className="max-h-96 overflow-auto rounded-md border border-line bg-quiet p-3 pr-11 font-mono text-xs leading-5 whitespace-pre-wrap break-words"
        tabIndex={0}
        role="region"
        aria-label={label}
      >
        {text.slice(0, end)}
        {text.length > end && '…'}
      </pre>
      <span className="absolute top-0 right-0 p-1.5">
        <CopyButton text={text} label={`Copy ${label.toLowerCase()}`} />
      </span>
      {text.length > shown && (
        <div className="mt-1 flex items-center gap-2 text-xs text-soft">
          <span>
            {formatCount(Math.min(end, text.length))} of {formatCount(text.length)} characters
          </span>
          <Button size="small" onClick={() => setWhole(!isWhole)}>
            {isWhole ? 'Show less' : 'Show all'}
          </Button>
        </div>
      )}
    </div>
  )
}
