import { Pause, Play, RefreshCw } from 'lucide-react'
import { useEffect, useState } from 'react'
import { createPortal } from 'react-dom'
import { useLive } from '../api/live.tsx'
import { Button } from '../ui/button.tsx'

/** Identifies the place in the bar above every page where it is said whether the page is live. */
export const liveSlot = 'live'

const looks = {
  connecting: ['text-soft', 'connecting', 'Connecting'],
  live: ['text-good', 'open', 'Live'],
  paused: ['text-warn', 'paused', 'Paused'],
  reconnecting: ['text-warn', 'reconnecting', 'Reconnecting'],
}

/** Whether this page follows what happens, and the button that makes it stop and go on: in the bar above the page. */
export function LiveBadge() {
  const [slot, setSlot] = useState<HTMLElement | null>(null)
  useEffect(() => setSlot(document.getElementById(liveSlot)), [])
  return slot && createPortal(<Badge />, slot)
}

function Badge() {
  const { state, isLent, pause, resume } = useLive()
  const isPaused = state === 'paused'
  const [tone, connection, word] = looks[state]
  return (
    <span className="inline-flex items-center">
      <span
        role="status"
        data-connection={connection}
        className={`inline-flex w-28 items-center justify-end gap-1.5 text-sm max-sm:w-auto ${tone}`}
      >
        {state === 'reconnecting' || state === 'connecting' ? (
          <RefreshCw size={13} aria-hidden className="motion-safe:animate-spin" />
        ) : (
          <span aria-hidden className={`size-2 rounded-full ${isPaused ? 'bg-warn' : 'bg-good'}`} />
        )}
        <span className="max-sm:sr-only">{word}</span>
      </span>
      <Button
        kind="ghost"
        className="!px-2"
        onClick={isPaused ? resume : pause}
        reason={isLent ? 'A running task is always live' : undefined}
        aria-label={isPaused ? 'Resume live updates' : 'Pause live updates'}
        title={isPaused ? 'Resume live updates' : 'Pause live updates'}
      >
        {isPaused ? <Play size={14} aria-hidden /> : <Pause size={14} aria-hidden />}
      </Button>
    </span>
  )
}
