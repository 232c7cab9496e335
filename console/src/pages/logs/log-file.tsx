import { formatCount, plural } from '../../format.ts'
import { ClipboardCopy, Download } from 'lucide-react'
import { useState } from 'react'
import { Button } from '../../ui/button.tsx'
import { putOnClipboard } from '../../ui/copy.tsx'
import { tell } from '../../ui/toast.tsx'
import { saveFile } from '../../ui/save-file.ts'
import type { LogStore } from './log-store.ts'

/** Lines of a download, and of what is copied, at most: more is for the API, a page at a time. */
const linesMax = 200_000
const patience_ms = 120_000

/** All lines that match, as NDJSON: as a file, or for pasting. Says how many they are, and which where there are more. */
export function LogFile({ store, onError }: { store: LogStore; onError: (error: unknown) => void }) {
  const [progress, setProgress] = useState<number>()
  const count = store.count
  const reason = progress !== undefined ? 'Loading lines' : count === 0 ? 'No lines' : undefined
  const which =
    count > linesMax
      ? `the newest ${formatCount(linesMax)} of ${formatCount(count)} lines`
      : count === 1
        ? 'the line'
        : `all ${formatCount(count)} lines`

  async function take(use: (lines: string[]) => Promise<void> | void): Promise<void> {
    onError(undefined)
    const read: string[] = []
    try {
      for await (const lines of store.newest(linesMax, AbortSignal.timeout(patience_ms))) {
        for (const line of lines) read.push(`${JSON.stringify(line)}\n`)
        setProgress(read.length)
      }
      await use(read)
    } catch (error) {
      onError(error)
    } finally {
      setProgress(undefined)
    }
  }
  const copy = () =>
    take(async (lines) => {
      if (!(await putOnClipboard(lines.join('')))) return tell('The browser blocks copying: download the lines instead')
      tell(
        count > linesMax
          ? `Copied the newest ${plural(lines.length, 'line')}; there are more`
          : `Copied ${plural(lines.length, 'line')}`,
      )
    })
  return (
    <>
      <Button reason={reason} title={`Copy ${which}`} onClick={() => void copy()}>
        <ClipboardCopy size={14} aria-hidden /> Copy {which}
      </Button>
      <Button
        reason={reason}
        title={`Download ${which}`}
        onClick={() => void take((lines) => saveFile('logs.ndjson', 'application/x-ndjson', lines))}
      >
        <Download size={14} aria-hidden /> {progress === undefined ? 'NDJSON' : `${formatCount(progress)} lines…`}
      </Button>
    </>
  )
}
