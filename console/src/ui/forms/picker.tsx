import { Combobox } from '@base-ui/react/combobox'
import { Check, ChevronDown } from 'lucide-react'
import type { ReactNode } from 'react'
import { control } from './control.ts'

export interface PickerChoice {
  id: string
  name: string
}

/** Chooses one of too many for a list: by a part of its name. What is offered for that part is up to the caller. */
export function Picker({
  label,
  chosen,
  none,
  choices,
  text,
  setText,
  isOpen,
  setOpen,
  onChange,
  note,
  className = '',
}: {
  label: string
  chosen: PickerChoice | null
  /** What is shown where nothing is chosen. */
  none: string
  /** What is offered for `text`. */
  choices: readonly PickerChoice[]
  text: string
  setText: (text: string) => void
  isOpen: boolean
  setOpen: (isOpen: boolean) => void
  onChange: (id: string) => void
  /** Below the choices: what else there is, or why there is nothing. */
  note: ReactNode
  className?: string
}) {
  return (
    <Combobox.Root<PickerChoice>
      items={choices}
      filter={null}
      value={chosen}
      onValueChange={(choice) => choice && onChange(choice.id)}
      isItemEqualToValue={(one, other) => one.id === other.id}
      itemToStringLabel={({ name }) => name}
      inputValue={text}
      onInputValueChange={setText}
      open={isOpen}
      onOpenChange={(next) => {
        setOpen(next)
        setText('')
      }}
    >
      <Combobox.Trigger
        aria-label={`${label}: ${chosen?.name ?? 'none chosen'}`}
        className={`${control} flex min-h-8 cursor-pointer items-center justify-between gap-2 text-left max-sm:min-h-10 ${className}`}
      >
        <span className="truncate">{chosen?.name ?? none}</span>
        <ChevronDown size={14} aria-hidden className="shrink-0 text-soft" />
      </Combobox.Trigger>
      <Combobox.Portal>
        <Combobox.Positioner align="start" sideOffset={4} className="z-60">
          <Combobox.Popup
            aria-label={label}
            className="w-80 max-w-[90vw] rounded-md border border-line bg-raised p-1 shadow-lg outline-none"
          >
            <Combobox.Input
              aria-label={`${label}, by a part of its name`}
              placeholder="Part of the name"
              className={`${control} mb-1`}
            />
            <Combobox.List className="max-h-72 overflow-y-auto outline-none">
              {(choice: PickerChoice) => (
                <Combobox.Item
                  key={choice.id}
                  value={choice}
                  className="flex min-h-8 cursor-pointer items-center gap-2 rounded px-2 outline-none select-none data-[highlighted]:bg-accent-soft"
                >
                  <span className="w-4 shrink-0">
                    <Combobox.ItemIndicator>
                      <Check size={14} aria-hidden />
                    </Combobox.ItemIndicator>
                  </span>
                  <span className="truncate">{choice.name}</span>
                </Combobox.Item>
              )}
            </Combobox.List>
            <Combobox.Status className="px-2 text-sm text-soft">{note}</Combobox.Status>
          </Combobox.Popup>
        </Combobox.Positioner>
      </Combobox.Portal>
    </Combobox.Root>
  )
}
