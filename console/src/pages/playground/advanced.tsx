import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { readSchema } from '../../agents/schema-text.ts'
import { api } from '../../api/client.ts'
import { ErrorBox } from '../../ui/error-box.tsx'
import { Field, SelectInput, TextArea } from '../../ui/forms/field.tsx'

/** Versions that can be chosen: the newest. */
const offeredVersions = 100

interface Further {
  project_id: string
  agent_id: string
  /** The version of the agent that the task runs with; undefined is the newest. */
  version: number | undefined
  onVersion: (version: number | undefined) => void
  /** A schema of the answer, as it is typed. */
  schemaText: string
  onSchemaText: (text: string) => void
}

/** What few tasks need: an older version of the agent, and data in place of a text. */
export function Advanced({ project_id, agent_id, version, onVersion, schemaText, onSchemaText }: Further) {
  const [isOpen, setOpen] = useState(version !== undefined || schemaText !== '')
  const versions = useQuery({
    queryKey: ['project', project_id, 'agents', 'versions', agent_id, 'offered'],
    queryFn: () => api.agents.listVersions(project_id, agent_id, { limit: offeredVersions }).page(),
    enabled: isOpen,
  })
  const read = readSchema(schemaText)
  const offered = versions.data?.items.map((one) => one.version) ?? []
  return (
    <details open={isOpen} onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
      <summary className="min-h-6 font-medium">Advanced</summary>
      <div className="mt-3 space-y-4">
        <Field label="Version" hint="Tasks run with the newest version unless you choose another.">
          <SelectInput
            value={version === undefined ? '' : String(version)}
            onChange={({ target: { value } }) => onVersion(value === '' ? undefined : Number(value))}
          >
            <option value="">Newest</option>
            {/* One that an address names may be older than those that are offered. */}
            {[...new Set([...offered, ...(version === undefined ? [] : [version])])].map((one) => (
              <option key={one} value={one}>
                Version {one}
              </option>
            ))}
          </SelectInput>
        </Field>
        <ErrorBox error={versions.error} retry={() => void versions.refetch()} />
        <Field
          label="Output schema"
          hint="JSON Schema of an object. For this task it takes the place of the agent’s own."
          fault={'fault' in read ? read.fault : undefined}
        >
          <TextArea
            rows={6}
            spellCheck={false}
            className="font-mono text-sm"
            value={schemaText}
            onChange={({ target: { value } }) => onSchemaText(value)}
          />
        </Field>
      </div>
    </details>
  )
}
