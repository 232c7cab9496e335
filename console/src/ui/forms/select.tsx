import { Select as Base } from '@base-ui/react/select'
import { Check, ChevronDown } from 'lucide-react'
import { Children, Fragment, isValidElement, type ReactElement, type ReactNode } from 'react'
import { control } from './control.ts'

/** One choice of a list. */
interface Choice {
  value: string
  label: ReactNode
  disabled: boolean
  title: string | undefined
}
interface Group {
  label: string | undefined
  choices: Choice[]
}

export interface SelectProps {
  /** What is read as its name, where no label stands beside it. */
  label?: string
  value: string
  onChange: (event: { target: { value: string } }) => void
  /** The choices: `<option>`, `<optgroup>`, or a component without state that gives them. */
  children: ReactNode
  className?: string
  disabled?: boolean
  title?: string
}

/** One of several, chosen from a list. Letters go to the choice that begins with them, arrows move, Enter chooses. */
export function Select({ label, value, onChange, children, className = '', disabled = false, title }: SelectProps) {
  const groups = groupsOf(children)
  const items = groups.flatMap(({ choices }) => choices)
  const chosen = items.find((choice) => choice.value === value)
  return (
    <Base.Root
      value={value}
      onValueChange={(next) => next !== null && onChange({ target: { value: next } })}
      items={items.map((choice) => ({ value: choice.value, label: choice.label }))}
      disabled={disabled}
      modal={false}
    >
      <Base.Trigger
        aria-label={label}
        title={title}
        data-value={value}
        className={`${control} flex min-h-8 cursor-pointer items-center justify-between gap-2 text-left max-sm:min-h-10 ${className}`}
      >
        <span className="min-w-0 truncate">{chosen?.label ?? value}</span>
        <ChevronDown size={14} aria-hidden className="shrink-0 text-soft" />
      </Base.Trigger>
      <Base.Portal>
        <Base.Positioner align="start" sideOffset={4} alignItemWithTrigger={false} className="z-60">
          <Base.Popup className="max-h-[min(22rem,var(--available-height))] min-w-(--anchor-width) max-w-[90vw] overflow-y-auto rounded-md border border-line bg-raised p-1 shadow-lg outline-none">
            {groups.map(({ label, choices }, at) =>
              label === undefined ? (
                <Fragment key={at}>{choices.map(item)}</Fragment>
              ) : (
                <Base.Group key={at}>
                  <Base.GroupLabel className="px-2 pt-2 pb-1 text-xs font-medium text-soft">{label}</Base.GroupLabel>
                  {choices.map(item)}
                </Base.Group>
              ),
            )}
          </Base.Popup>
        </Base.Positioner>
      </Base.Portal>
    </Base.Root>
  )
}

function item({ value, label, disabled, title }: Choice) {
  return (
    <Base.Item
      key={value}
      value={value}
      disabled={disabled}
      title={title}
      data-value={value}
      className="flex min-h-8 cursor-pointer items-center gap-2 rounded px-2 outline-none select-none data-[disabled]:cursor-not-allowed data-[disabled]:text-soft data-[highlighted]:bg-accent-soft max-sm:min-h-10"
    >
      <span className="w-4 shrink-0">
        <Base.ItemIndicator>
          <Check size={14} aria-hidden />
        </Base.ItemIndicator>
      </span>
      <Base.ItemText>{label}</Base.ItemText>
    </Base.Item>
  )
}

/** The text of an element's content: numbers and texts, also several beside each other. */
function textOf(node: ReactNode): string {
  if (Array.isArray(node)) return node.map(textOf).join('')
  return typeof node === 'string' || typeof node === 'number' ? String(node) : ''
}

/** The choices that elements stand for, with what is above each group of them. */
function groupsOf(children: ReactNode): Group[] {
  const groups: Group[] = []
  let open: Group | undefined
  const read = (nodes: ReactNode): void =>
    Children.forEach(nodes, (node) => {
      if (!isValidElement(node)) return
      const { type, props } = node as ReactElement<Record<string, ReactNode>>
      if (type === 'option') {
        if (!open) groups.push((open = { label: undefined, choices: [] }))
        const label = props['children']
        open.choices.push({
          value: textOf(props['value'] ?? label),
          label: textOf(label),
          disabled: props['disabled'] === true,
          title: props['title'] as string | undefined,
        })
      } else if (type === 'optgroup') {
        groups.push((open = { label: textOf(props['label']), choices: [] }))
        read(props['children'])
        open = undefined
      } else if (typeof type === 'function') read((type as (props: object) => ReactNode)(props))
      else read(props['children'])
    })
  read(children)
  return groups
}
