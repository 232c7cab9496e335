import { Pause, Play, Radio, RefreshCw } from 'lucide-react'
import { useLive } from '../api/live.tsx'
import { Button } from './button.tsx'

/** Whether this page follows what happens, and the button that makes it stop and go on. */
export function LiveBadge() {
  const { state, pause, resume } = useLive()
  const isPaused = state === 'paused'
  const Icon = state === 'live' ? Radio : state === 'paused' ? Pause : RefreshCw
  return (
    <span className="inline-flex items-center gap-1">
      <span
        role="status"
        className={`inline-flex items-center gap-1 text-sm ${state === 'live' ? 'text-good' : 'text-warn'}`}
      >
        <Icon size={14} aria-hidden />
        {state === 'live' ? 'Live' : isPaused ? 'Paused' : 'Reconnecting'}
      </span>
      <Button
        kind="ghost"
        className="!min-h-6 !px-1.5"
        onClick={isPaused ? resume : pause}
        aria-label={isPaused ? 'Follow again' : 'Stop following'}
        title={isPaused ? 'Follow again' : 'Stop following'}
      >
        {isPaused ? <Play size={14} aria-hidden /> : <Pause size={14} aria-hidden />}
      </Button>
    </span>
  )
}
