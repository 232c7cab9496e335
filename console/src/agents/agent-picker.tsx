import { formatCount } from '../format.ts'
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { useDeferredValue, useMemo, useState } from 'react'
import { api } from '../api/client.ts'
import { messageOf } from '../api/error-text.ts'
import { Picker, type PickerChoice } from '../ui/forms/picker.tsx'
import { useAgentNames } from './agent-names.ts'

/** Agents that are offered at a time: the others are found by their names. */
const offered = 20

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
  const choices = useMemo<PickerChoice[]>(
    () => [
      // Without an id: any agent.
      ...(any !== undefined && search === '' ? [{ id: '', name: any }] : []),
      ...(found.data?.items ?? []).map(({ id, name }) => ({ id, name })),
    ],
    [found.data, any, search],
  )
  const chosen: PickerChoice | null =
    value === undefined
      ? any === undefined
        ? null
        : { id: '', name: any }
      : { id: value, name: named.get(value) ?? value }
  const more = (found.data?.total ?? 0) - (found.data?.items.length ?? 0)
  return (
    <Picker
      label={label}
      chosen={chosen}
      none="Choose an agent"
      choices={choices}
      text={text}
      setText={setText}
      isOpen={isOpen}
      setOpen={setOpen}
      onChange={(id) => onChange(id === '' ? undefined : id)}
      className={className}
      note={
        found.error
          ? messageOf(found.error)
          : found.isPending
            ? 'Loading agents…'
            : choices.length === 0
              ? 'No matching agents.'
              : more > 0
                ? `${formatCount(more)} more: type a part of the name.`
                : ''
      }
    />
  )
}
