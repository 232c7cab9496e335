import { useState, type ReactNode } from 'react'
import { Field, SelectInput, TextInput } from '../../ui/forms/field.tsx'
import { Form } from '../../ui/forms/form.tsx'
import { Options } from '../parts/options.tsx'
import { presetOf, scopePresets, scopeWords, type Scope } from './scope-presets.ts'

const day_ms = 86_400_000
const expiries = { '30': '30 days', '90': '90 days', '365': '1 year', '': 'Never' }

export interface KeyValues {
  name: string
  description: string
  scopes: Scope[]
  expires_at?: string | undefined
}

/** What a key is for, what it may do, and until when. An existing key keeps its expiry: the API changes that by no means. */
export function KeyForm({
  values,
  error,
  isBusy,
  submit,
  warning,
}: {
  values?: KeyValues
  error: unknown
  isBusy: boolean
  submit: (values: KeyValues) => void
  /** What would happen with these scopes. */
  warning?: (scopes: Scope[]) => ReactNode
}) {
  const [name, setName] = useState(values?.name ?? '')
  const [description, setDescription] = useState(values?.description ?? '')
  const [scopes, setScopes] = useState<Scope[]>(values?.scopes ?? ['tasks:write'])
  const [days, setDays] = useState('90')
  const preset = presetOf(scopes)
  const reason = name.trim() === '' ? 'Give it a name' : scopes.length === 0 ? 'Choose its permissions' : undefined
  return (
    <Form
      action={values ? 'Save' : 'Create key'}
      reason={reason}
      error={error}
      isBusy={isBusy}
      submit={() => {
        const expires_at =
          values || days === '' ? undefined : new Date(Date.now() + Number(days) * day_ms).toISOString()
        submit({ name: name.trim(), description, scopes, ...(expires_at ? { expires_at } : {}) })
      }}
    >
      <Field field="name" label="Name" hint="Where it will be used: “billing worker”, “ci”.">
        <TextInput value={name} onChange={(event) => setName(event.target.value)} maxLength={100} autoFocus />
      </Field>
      <Field field="description" label="Description (optional)">
        <TextInput value={description} onChange={(event) => setDescription(event.target.value)} maxLength={500} />
      </Field>
      <fieldset>
        <legend className="mb-1 text-sm font-medium">Permissions</legend>
        <div className="grid grid-cols-1 gap-2 sm:grid-cols-2">
          {scopePresets.map(({ id, label, hint, scopes: wanted }) => (
            <label
              key={id}
              className={`flex cursor-pointer gap-2 rounded-md border p-2.5 ${preset === id ? 'border-accent bg-accent-soft' : 'border-line'}`}
            >
              <input
                type="radio"
                name="preset"
                className="mt-0.5 size-4"
                checked={preset === id}
                onChange={() => setScopes(wanted)}
              />
              <span>
                <span className="block text-sm font-medium">{label}</span>
                <span className="block text-xs text-soft">{hint}</span>
              </span>
            </label>
          ))}
        </div>
        <details className="mt-3" open={preset === undefined}>
          <summary className="min-h-6 cursor-pointer text-sm">Choose scopes one by one</summary>
          <div className="mt-2 grid gap-1">
            {(Object.keys(scopeWords) as Scope[]).map((scope) => (
              <label key={scope} className="flex min-h-6 items-start gap-2 text-sm">
                <input
                  type="checkbox"
                  className="mt-0.5 size-4 shrink-0"
                  checked={scopes.includes(scope)}
                  onChange={(event) =>
                    setScopes(event.target.checked ? [...scopes, scope] : scopes.filter((one) => one !== scope))
                  }
                />
                <span>
                  <code className="font-mono text-xs">{scope}</code>{' '}
                  <span className="text-soft">{scopeWords[scope]}</span>
                </span>
              </label>
            ))}
          </div>
        </details>
      </fieldset>
      {warning?.(scopes)}
      {!values && (
        <Field
          label="Expires"
          hint={days === '' ? 'A leaked key without an expiry works until it is revoked.' : undefined}
        >
          <SelectInput value={days} onChange={(event) => setDays(event.target.value)}>
            <Options of={expiries} />
          </SelectInput>
        </Field>
      )}
    </Form>
  )
}
