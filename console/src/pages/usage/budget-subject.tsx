import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import { useAgentNames } from '../../agents/agent-names.ts'
import { AgentPicker } from '../../agents/agent-picker.tsx'
import { api } from '../../api/client.ts'
import { paths } from '../../paths.ts'
import { CopyId } from '../../ui/copy.tsx'
import { Field, SelectInput, TextInput } from '../../ui/forms/field.tsx'
import type { Budget } from '#sdk/types.ts'

/** How many of one's own keys can be chosen by name; others by their identifier. */
const keysToChoose = 200
const another = 'another'

/** The user's own keys: names of other users' keys are not shown. */
function useOwnKeys(isWanted: boolean) {
  return useQuery({
    queryKey: ['api-keys', 'to choose'],
    queryFn: () => api.apiKeys.list({ limit: 100 }).toArray({ max: keysToChoose }),
    enabled: isWanted,
  })
}

interface Picked {
  project: string
  scope: Budget['scope']
  value: string
  onChange: (subject: string) => void
}

/** Which agent, or which key, a budget limits: chosen by name. The other scopes have one subject only. */
export function SubjectPicker({ project, scope, value, onChange }: Picked) {
  const keys = useOwnKeys(scope === 'api_key')
  const [isOther, setOther] = useState(false)
  if (scope === 'agent')
    return (
      <AgentPicker
        project_id={project}
        label="Agent"
        value={value === '' ? undefined : value}
        onChange={(id) => onChange(id ?? '')}
      />
    )
  if (scope !== 'api_key') return null
  return (
    <>
      <Field field="subject" label="API key" hint="Your own keys; a key of another user by its id.">
        <SelectInput
          value={isOther ? another : value}
          onChange={({ target }) => {
            setOther(target.value === another)
            onChange(target.value === another ? '' : target.value)
          }}
        >
          <option value="">Choose one</option>
          {keys.data?.map(({ id, name, key_preview }) => (
            <option key={id} value={id}>
              {name} ({key_preview})
            </option>
          ))}
          <option value={another}>Another key, by its id</option>
        </SelectInput>
      </Field>
      {isOther && (
        <Field field="subject" label="Identifier" hint="key_…, as it stands beside the key under “API keys”.">
          <TextInput value={value} onChange={(event) => onChange(event.target.value)} />
        </Field>
      )}
    </>
  )
}

/** What a budget limits, by its name where that can be known, and its identifier. */
export function SubjectName({ project, budget: { scope, subject } }: { project: string; budget: Budget }) {
  const agents = useAgentNames(project, [scope === 'agent' ? subject : undefined])
  const keys = useOwnKeys(scope === 'api_key')
  const name = scope === 'agent' ? agents.get(subject) : keys.data?.find(({ id }) => id === subject)?.name
  const to = scope === 'agent' ? paths.agent(project, subject) : paths.keys({ panel: subject })
  return (
    <span className="flex flex-wrap items-center gap-x-2">
      {name !== undefined && (
        <Link {...to} className="break-words">
          {name}
        </Link>
      )}
      <CopyId id={subject} short={name !== undefined} />
    </span>
  )
}
