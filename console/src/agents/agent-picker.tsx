import { formatCount } from '../format.ts'
import { Combobox } from '@base-ui/react/combobox'
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { Check, ChevronDown } from 'lucide-react'
import { useDeferredValue, useMemo, useState } from 'react'
import { api } from '../api/client.ts'
import { messageOf } from '../api/error-text.ts'
import { control } from '../ui/field.tsx'
import { useAgentNames } from './agent-names.ts'

/** Agents that are offered at a time: the others are found by their names. */
const offered = 20

interface Choice {
  /** Empty: any agent. */
  id: string
  name: string
}

interface AgentPicker {
  project_id: string
  label: string
  value: string | undefined
  onChange: (agent_id: string | undefined) => void
  /** What it is called to choose none; left out where one must be chosen. */
  any?: string
  className?: string
}

/** The same as a field of a form: under its label. */
export function AgentField(props: Omit<AgentPicker, 'label'> & { label?: string }) {
  const { label = 'Agent' } = props
  return (
    <div>
      <p className="mb-1 font-medium">{label}</p>
      <AgentPicker {...props} label={label} />
    </div>
  )
}

/** Chooses an agent of a project, of however many there are: they are looked for by the service, by a part of the name. */
export function AgentPicker({ project_id, label, value, onChange, any, className = '' }: AgentPicker) {
  const [isOpen, setOpen] = useState(false)
  const [text, setText] = useState('')
  const search = useDeferredValue(text.trim())
  const named = useAgentNames(project_id, [value])
  const found = useQuery({
    queryKey: ['project', project_id, 'agents', 'picker', search],
    queryFn: () =>
      api.agents.list(project_id, { limit: offered, sort: 'name', ...(search === '' ? {} : { search }) }).page(),
    enabled: isOpen,
    placeholderData: keepPreviousData,
  })
  const choices = useMemo<Choice[]>(
    () => [
      ...(any !== undefined && search === '' ? [{ id: '', name: any }] : []),
      ...(found.data?.items ?? []).map(({ id, name }) => ({ id, name })),
    ],
    [found.data, any, search],
  )
  const chosen: Choice | null =
    value === undefined
      ? any === undefined
        ? null
        : { id: '', name: any }
      : { id: value, name: named.get(value) ?? value }
  const more = (found.data?.total ?? 0) - (found.data?.items.length ?? 0)
  return (
    <Combobox.Root<Choice>
      items={choices}
      filter={null}
      value={chosen}
      onValueChange={(choice) => choice && onChange(choice.id === '' ? undefined : choice.id)}
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
        <span className="truncate">{chosen?.name ?? 'Choose an agent'}</span>
        <ChevronDown size={14} aria-hidden className="shrink-0 text-soft" />
      </Combobox.Trigger>
      <Combobox.Portal>
        <Combobox.Positioner align="start" sideOffset={4} className="z-50">
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
              {(choice: Choice) => (
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
            <Combobox.Status className="px-2 text-sm text-soft">
              {found.error
                ? messageOf(found.error)
                : found.isPending
                  ? 'Loading agents…'
                  : choices.length === 0
                    ? 'No matching agents.'
                    : more > 0
                      ? `${formatCount(more)} more: type a part of the name.`
                      : ''}
            </Combobox.Status>
          </Combobox.Popup>
        </Combobox.Positioner>
      </Combobox.Portal>
    </Combobox.Root>
  )
}
