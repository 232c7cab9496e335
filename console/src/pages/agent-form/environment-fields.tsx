import { useState, type ReactNode } from 'react'
import { Button } from '../../ui/button.tsx'
import { Field, SecretInput, TextInput } from '../../ui/forms/field.tsx'
import { Panel } from '../../ui/page.tsx'

/** Environment variables: their names are shown, their values only written. */
export function EnvironmentFields({
  names,
  value,
  fault,
  onChange,
}: {
  names: readonly string[]
  value: Record<string, string | null>
  fault: ReactNode
  onChange: (value: Record<string, string | null>) => void
}) {
  const [name, setName] = useState('')
  const all = [...new Set([...names, ...Object.keys(value)])].toSorted()
  return (
    <Panel title="Environment variables">
      <div className="space-y-3 p-4">
        <p className="text-soft">Kept encrypted. Values are written and never shown again.</p>
        {all.map((name) => (
          <div key={name} className="flex flex-wrap items-end gap-2">
            <div className="min-w-40 flex-1">
              <Field label={name}>
                <SecretInput
                  placeholder={value[name] === null ? 'Will be removed' : names.includes(name) ? 'Stays as it is' : ''}
                  disabled={value[name] === null}
                  value={value[name] ?? ''}
                  onChange={(event) => onChange({ ...value, [name]: event.target.value })}
                />
              </Field>
            </div>
            <Button
              onClick={() => {
                const { [name]: old, ...others } = value
                onChange(names.includes(name) && old !== null ? { ...others, [name]: null } : others)
              }}
            >
              {value[name] === null ? 'Keep' : 'Remove'}
              <span className="sr-only"> {name}</span>
            </Button>
          </div>
        ))}
        <div className="flex flex-wrap items-end gap-2">
          <div className="min-w-40 flex-1">
            <Field label="Name of a new variable" fault={fault}>
              <TextInput
                autoComplete="off"
                spellCheck={false}
                value={name}
                onChange={(event) => setName(event.target.value)}
              />
            </Field>
          </div>
          <Button
            reason={
              name === '' ? 'Enter a name first' : all.includes(name) ? 'This variable already exists' : undefined
            }
            onClick={() => {
              onChange({ ...value, [name]: '' })
              setName('')
            }}
          >
            Add
          </Button>
        </div>
      </div>
    </Panel>
  )
}
