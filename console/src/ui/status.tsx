import {
  Ban,
  CircleAlert,
  CircleCheck,
  CircleDashed,
  CircleDot,
  CirclePause,
  CircleStop,
  Clock,
  Hourglass,
  LoaderCircle,
  TriangleAlert,
  type LucideIcon,
} from 'lucide-react'

type Tone = 'good' | 'warn' | 'bad' | 'info' | 'quiet'

const tones: Record<Tone, string> = {
  good: 'text-good bg-good-soft',
  warn: 'text-warn bg-warn-soft',
  bad: 'text-bad bg-bad-soft',
  info: 'text-info bg-info-soft',
  quiet: 'text-soft bg-quiet',
}

/** How each state looks: never by colour alone. One table for agents, tasks, deliveries and whatever else has a state. */
const looks: Record<string, { icon: LucideIcon; tone: Tone; isMoving?: boolean }> = {
  creating: { icon: LoaderCircle, tone: 'info', isMoving: true },
  updating: { icon: LoaderCircle, tone: 'info', isMoving: true },
  running: { icon: CircleDot, tone: 'good' },
  paused: { icon: CirclePause, tone: 'warn' },
  stopped: { icon: CircleStop, tone: 'quiet' },
  error: { icon: CircleAlert, tone: 'bad' },
  queued: { icon: CircleDashed, tone: 'quiet' },
  waiting: { icon: Hourglass, tone: 'warn' },
  completed: { icon: CircleCheck, tone: 'good' },
  failed: { icon: CircleAlert, tone: 'bad' },
  canceling: { icon: LoaderCircle, tone: 'warn', isMoving: true },
  canceled: { icon: Ban, tone: 'quiet' },
  expired: { icon: Clock, tone: 'quiet' },
  pending: { icon: Hourglass, tone: 'warn' },
  approved: { icon: CircleCheck, tone: 'good' },
  denied: { icon: Ban, tone: 'bad' },
  delivered: { icon: CircleCheck, tone: 'good' },
  active: { icon: CircleCheck, tone: 'good' },
  drifted: { icon: TriangleAlert, tone: 'warn' },
  connected: { icon: CircleCheck, tone: 'good' },
  needs_authorization: { icon: Hourglass, tone: 'warn' },
  failing: { icon: CircleAlert, tone: 'bad' },
  unreadable: { icon: CircleAlert, tone: 'bad' },
  idle: { icon: CircleDashed, tone: 'quiet' },
  busy: { icon: LoaderCircle, tone: 'info', isMoving: true },
  reachable: { icon: CircleCheck, tone: 'good' },
  refused: { icon: Ban, tone: 'bad' },
  unreachable: { icon: CircleAlert, tone: 'bad' },
  disabled: { icon: CircleStop, tone: 'quiet' },
}

/** The state of something, as an icon and a word. */
export function Status({ state, label = state, tone }: { state: string; label?: string; tone?: Tone }) {
  const look = looks[state] ?? { icon: CircleDot, tone: 'quiet' as const }
  const Icon = look.icon
  return (
    <span
      className={`inline-flex items-center gap-1 rounded-full px-2 py-0.5 text-xs font-medium whitespace-nowrap ${tones[tone ?? look.tone]}`}
    >
      <Icon size={13} aria-hidden className={look.isMoving ? 'motion-safe:animate-spin' : ''} />
      {label.replaceAll('_', ' ')}
    </span>
  )
}

/** A short fact in a frame, such as a tag, a level or a kind. */
export function Badge({ children, tone = 'quiet' }: { children: React.ReactNode; tone?: Tone }) {
  return (
    <span className={`inline-block rounded px-1.5 py-0.5 text-xs font-medium whitespace-nowrap ${tones[tone]}`}>
      {children}
    </span>
  )
}
