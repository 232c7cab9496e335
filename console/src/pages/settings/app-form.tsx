import { useState } from 'react'
import { APIError } from '#sdk/errors.ts'
import { Checkbox, Field, TextArea, TextInput } from '../../ui/forms/field.tsx'
import { Form } from '../../ui/forms/form.tsx'
import { scopeWords, type Scope } from './scope-presets.ts'

export interface AppValues {
  name: string
  redirect_uris: string[]
  scopes: Scope[]
  confidential: boolean
  native: boolean
}

/** What an app is called, where it leads back to, and what it may ask for. What kind it is, only a new one can say. */
export function AppForm({
  values,
  error,
  isBusy,
  submit,
}: {
  values?: AppValues
  error: unknown
  isBusy: boolean
  submit: (values: AppValues) => void
}) {
  const [name, setName] = useState(values?.name ?? '')
  const [uris, setUris] = useState(values?.redirect_uris.join('\n') ?? '')
  const [scopes, setScopes] = useState<Scope[]>(values?.scopes ?? ['read'])
  const [confidential, setConfidential] = useState(values?.confidential ?? true)
  const [native, setNative] = useState(values?.native ?? false)
  const redirect_uris = uris.split(/\s+/).filter((uri) => uri !== '')
  const fault = (field: string): string | undefined =>
    error instanceof APIError
      ? error.issues
          .filter((issue) => issue.field === field || issue.field.startsWith(`${field}[`))
          .map((issue) =>
            issue.field === field ? issue.message : `${redirect_uris[indexOf(issue.field)]} ${issue.message}`,
          )
          .join('; ') || undefined
      : undefined
  const reason =
    name.trim() === ''
      ? 'Give it a name'
      : redirect_uris.length === 0
        ? 'Enter a redirect URI'
        : scopes.length === 0
          ? 'Choose at least one scope'
          : undefined
  return (
    <Form
      action={values ? 'Save' : 'Register'}
      reason={reason}
      error={error}
      isBusy={isBusy}
      submit={() => submit({ name: name.trim(), redirect_uris, scopes, confidential, native })}
    >
      <Field label="Name" hint="Shown to people on the consent page." fault={fault('name')}>
        <TextInput value={name} onChange={(event) => setName(event.target.value)} autoComplete="off" />
      </Field>
      <Field
        label="Redirect URIs"
        hint="One per line, matched exactly. https, or http for this machine alone."
        fault={fault('redirect_uris')}
      >
        <TextArea
          rows={3}
          spellCheck={false}
          className="font-mono text-sm"
          placeholder="https://app.example.com/callback"
          value={uris}
          onChange={(event) => setUris(event.target.value)}
        />
      </Field>
      {!values && (
        <div className="space-y-1">
          <Checkbox
            label="Confidential: it runs on a server and can keep a secret"
            checked={confidential}
            onChange={(event) => setConfidential(event.target.checked)}
          />
          <Checkbox
            label="Native: it runs on its user’s device"
            checked={native}
            onChange={(event) => setNative(event.target.checked)}
          />
        </div>
      )}
      <fieldset>
        <legend className="mb-1 font-medium">Scopes</legend>
        <div className="grid gap-1">
          {(Object.keys(scopeWords) as Scope[]).map((scope) => (
            <Checkbox
              key={scope}
              label={
                <span>
                  <code>{scope}</code> <span className="text-soft">{scopeWords[scope]}</span>
                </span>
              }
              checked={scopes.includes(scope)}
              onChange={(event) =>
                setScopes(event.target.checked ? [...scopes, scope] : scopes.filter((one) => one !== scope))
              }
            />
          ))}
        </div>
      </fieldset>
    </Form>
  )
}

/** `redirect_uris[2]` is the third. */
function indexOf(field: string): number {
  return Number(/\[(\d+)\]/.exec(field)?.[1] ?? 0)
}
