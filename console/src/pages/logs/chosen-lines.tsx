import { formatCount, plural } from '../../format.ts'
import { ClipboardCopy, X } from 'lucide-react'
import { useState } from 'react'
import { Button } from '../../ui/button.tsx'
import { putOnClipboard } from '../../ui/copy.tsx'
import { tell } from '../../ui/toast.tsx'
import type { LogStore } from './log-store.ts'

/** How many lines are chosen, and what is done with them: rows that are out of sight are read first. */
export function ChosenLines({
  store,
  from,
  to,
  onClear,
}: {
  store: LogStore
  from: number
  to: number
  onClear: () => void
}) {
  const [isBusy, setBusy] = useState(false)
  const count = to - from + 1
  const copy = async (): Promise<void> => {
    setBusy(true)
    try {
      const lines = await store.lines(from, to)
      const isCopied = await putOnClipboard(lines.map((line) => `${JSON.stringify(line)}\n`).join(''))
      tell(
        isCopied ? `Copied ${plural(lines.length, 'line')}` : 'The browser blocks copying: download the lines instead',
      )
    } catch (error) {
      tell(error instanceof Error ? error.message : String(error))
    } finally {
      setBusy(false)
    }
  }
  return (
    <span className="inline-flex items-center gap-1" role="group" aria-label="Selected lines">
      <Button size="small" onClick={() => void copy()} disabled={isBusy}>
        <ClipboardCopy size={14} aria-hidden="true" /> Copy {formatCount(count)} selected
      </Button>
      <Button size="small" kind="ghost" onClick={onClear}>
        <X size={14} aria-hidden="true" /> Clear selection
      </Button>
    </span>
  )
}
