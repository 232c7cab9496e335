import { Menu as Base } from '@base-ui/react/menu'
import type { ReactElement, ReactNode } from 'react'

/** Actions behind a button. `trigger` is the button. */
export function Menu({
  trigger,
  children,
  align = 'end',
}: {
  trigger: ReactElement
  children: ReactNode
  align?: 'start' | 'end'
}) {
  return (
    <Base.Root>
      <Base.Trigger render={trigger} />
      <Base.Portal>
        <Base.Positioner align={align} sideOffset={4} className="z-50">
          <Base.Popup className="max-h-[70dvh] min-w-44 overflow-y-auto rounded-md border border-line bg-raised p-1 shadow-lg outline-none">
            {children}
          </Base.Popup>
        </Base.Positioner>
      </Base.Portal>
    </Base.Root>
  )
}

const item =
  'flex min-h-8 w-full cursor-pointer items-center gap-2 rounded px-2.5 text-base text-text no-underline outline-none select-none ' +
  'data-[highlighted]:bg-accent-soft data-[disabled]:cursor-not-allowed data-[disabled]:text-soft'

/** An action. With `reason` it is disabled and says why. */
export function MenuItem({
  children,
  onClick,
  reason,
  isDangerous,
}: {
  children: ReactNode
  onClick: () => void
  reason?: string | undefined
  isDangerous?: boolean
}) {
  return (
    <Base.Item
      onClick={onClick}
      disabled={reason !== undefined}
      title={reason}
      className={`${item} ${isDangerous ? 'text-bad' : ''}`}
    >
      {children}
      {reason !== undefined && <span className="sr-only">: {reason}</span>}
    </Base.Item>
  )
}

/** Somewhere to go: `render` is the link. */
export function MenuLink({ render, children }: { render: ReactElement; children: ReactNode }) {
  return (
    <Base.Item render={render} className={item}>
      {children}
    </Base.Item>
  )
}

/** One of several, of which one is chosen. */
export function MenuChoice<T extends string>({
  label,
  value,
  choices,
  choose,
}: {
  label: string
  value: T
  choices: readonly { value: T; label: string }[]
  choose: (value: T) => void
}) {
  return (
    <Base.Group>
      <Base.GroupLabel className="px-2.5 pt-2 pb-1 text-xs font-medium text-soft">{label}</Base.GroupLabel>
      <Base.RadioGroup value={value} onValueChange={(next) => choose(next as T)}>
        {choices.map((choice) => (
          <Base.RadioItem key={choice.value} value={choice.value} className={item}>
            <span className="w-3">
              <Base.RadioItemIndicator>•</Base.RadioItemIndicator>
            </span>
            {choice.label}
          </Base.RadioItem>
        ))}
      </Base.RadioGroup>
    </Base.Group>
  )
}
