import { useState, type ReactNode } from 'react'
import { Field, TextInput } from '../../ui/forms/field.tsx'
import { Panel } from '../../ui/page.tsx'
import type { Draft } from './draft.ts'
import { JsonField } from './json-field.tsx'
import { ListInput } from './list-input.tsx'

interface About {
  draft: Draft
  /** What is wrong with a field, by its path from the body on. */
  fault: (field: string) => ReactNode
  change: (members: Partial<Draft>) => void
  /** Why what is written as metadata is no JSON. */
  metadataFault: string | undefined
  onMetadataFault: (fault: string | undefined) => void
}

/** What people call an agent and note about it. */
export function AboutFields({ draft, fault, change, metadataFault, onMetadataFault }: About) {
  // As it was when it came to be shown: it does not close under who empties it.
  const [hasMetadata] = useState(() => Object.keys(draft.metadata).length > 0)
  return (
    <Panel title="General">
      <div className="space-y-4 p-4">
        <Field label="Name" fault={fault('name')} hint="Unique in the project.">
          <TextInput
            required
            autoComplete="off"
            value={draft.name}
            onChange={({ target: { value: name } }) => change({ name })}
          />
        </Field>
        <Field label="Description" fault={fault('description')}>
          <TextInput
            autoComplete="off"
            value={draft.description}
            onChange={({ target: { value: description } }) => change({ description })}
          />
        </Field>
        <Field
          label="Tags"
          fault={fault('metadata.tags')}
          hint="Separate tags with commas. Agents can be filtered by them."
        >
          <ListInput value={draft.tags} onChange={(tags) => change({ tags })} />
        </Field>
        <details open={hasMetadata}>
          <summary className="mb-2 min-h-6 font-medium">Metadata</summary>
          <JsonField
            label="Metadata as JSON"
            hint="Your own notes as JSON. The agent does not see them."
            rows={6}
            value={draft.metadata}
            fault={metadataFault ?? fault('metadata')}
            onChange={(metadata) => change({ metadata })}
            onFault={onMetadataFault}
          />
        </details>
      </div>
    </Panel>
  )
}
