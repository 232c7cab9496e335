import {
  Bot,
  CircleAlert,
  CircleDashed,
  CircleHelp,
  Clock,
  FoldVertical,
  ShieldQuestion,
  Wrench,
  type LucideIcon,
} from 'lucide-react'
import { Button } from '../ui/button.tsx'
import { Status } from '../ui/status.tsx'
import { asText, plural } from '../format.ts'
import type { Step, Task } from './types.ts'
import type { Follow } from './use-follow.ts'

/** What a task waits for: of one that is offered to remote workers, the queue too. */
function waitWords({ reason, queue }: NonNullable<Task['wait']>): string {
  return reason === 'worker' && queue !== undefined ? `a worker of ${queue}` : asText(reason)
}

/** How a task stands, and what it waits for. */
export function TaskBadge({ task }: { task: Pick<Task, 'status' | 'wait' | 'cancel_requested_at'> }) {
  const isEnding = task.cancel_requested_at !== null && ['queued', 'running', 'waiting'].includes(task.status)
  if (isEnding) return <Status state="canceling" />
  return <Status state={task.status} label={task.wait ? `${task.status} for ${waitWords(task.wait)}` : task.status} />
}

const stepIcons: Partial<Record<string, LucideIcon>> = {
  model_call: Bot,
  tool_call: Wrench,
  approval: ShieldQuestion,
  wait: Clock,
  compaction: FoldVertical,
}

export function StepIcon({ step }: { step: Pick<Step, 'type' | 'status'> }) {
  if (step.status === 'failed')
    return <CircleAlert size={15} className="shrink-0 text-bad" aria-label="failed" role="img" />
  if (step.status === 'unknown')
    return <CircleHelp size={15} className="shrink-0 text-bad" aria-label="outcome unknown" role="img" />
  const Icon = stepIcons[step.type] ?? CircleDashed
  const isOpen = step.status === 'started'
  return (
    <Icon
      size={15}
      role="img"
      aria-label={isOpen ? 'under way' : 'done'}
      className={`shrink-0 ${isOpen ? 'text-accent' : 'text-soft'}`}
    />
  )
}

/** Says that a list stands still, what came meanwhile, and goes back to its end. */
export function FollowBar({ follow, unit }: { follow: Follow; unit: string }) {
  if (follow.isFollowing) return null
  const { missed } = follow
  return (
    <div className="absolute inset-x-0 bottom-3 flex justify-center">
      <Button className="shadow-md" kind="primary" onClick={follow.resume}>
        {missed > 0 ? `${plural(missed, `new ${unit}`)} — jump to latest` : 'Paused — jump to latest'}
      </Button>
    </div>
  )
}
