import { useEffect } from 'react'
import type { TaskLive } from './task-live.ts'

interface Receipt {
  reason: string | null
  effects: { step_id: string; tool: string }[]
  uncertain: { step_id: string; tool: string }[]
  forced?: boolean
}

/**
 * What a canceled task had done by then: why it was canceled, which calls took effect, and which have an unknown
 * outcome.
 */
export function CancelReceipt({ live }: { live: TaskLive }) {
  const last = live.lastSequence
  useEffect(() => live.needEvents(last, last), [live, last])
  const event = live.events.get(last)
  if (event?.type !== 'task.canceled') return undefined
  const { reason, effects, uncertain, forced } = event.data as unknown as Receipt
  return (
    <ul className="mt-1 grid gap-1 text-sm">
      {reason && <li>Why: {reason}</li>}
      <li>{effects.length === 0 ? 'No call of a tool had taken effect.' : <>Had taken effect: {named(effects)}</>}</li>
      {uncertain.length > 0 && <li className="text-warn">Outcome unknown: {named(uncertain)}</li>}
      {forced && <li className="text-warn">Its worker did not confirm that it stopped.</li>}
    </ul>
  )
}

/** The tools, each once, with how often each was called. */
function named(calls: Receipt['effects']): string {
  const counts = new Map<string, number>()
  for (const { tool } of calls) counts.set(tool, (counts.get(tool) ?? 0) + 1)
  return [...counts].map(([tool, count]) => (count === 1 ? tool : `${tool} (${count} times)`)).join(', ')
}
