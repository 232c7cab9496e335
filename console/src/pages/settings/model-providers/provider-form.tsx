import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { projectId } from '#contract/core/project-id.ts'
import { knownAddresses } from '#contract/models/known-addresses.ts'
import { nativeProviders } from '#contract/models/native-providers.ts'
import type { ModelProvider, NewModelProvider } from '#sdk/types.ts'
import { projectsQuery } from '../../../api/queries.ts'
import { Checkbox, Field, SecretInput, SelectInput, storedSecretHint, TextInput } from '../../../ui/forms/field.tsx'
import { Form } from '../../../ui/forms/form.tsx'
import { Options } from '../../parts/options.tsx'

const other = 'other'
/** What can be chosen: providers whose address is known, and any other server. */
const kinds: Record<string, string> = {
  ...Object.fromEntries(Object.entries(nativeProviders).map(([name, { title }]) => [name, title])),
  ...Object.fromEntries(Object.keys(knownAddresses).map((name) => [name, name])),
  [other]: 'Another server that speaks an OpenAI protocol',
}
const addresses: Readonly<Record<string, string>> = {
  ...Object.fromEntries(Object.entries(nativeProviders).map(([name, { base_url }]) => [name, base_url])),
  ...knownAddresses,
}

/** A new provider of the organization: its key goes to the service and never comes back. */
export function ProviderForm({
  error,
  isBusy,
  submit,
}: {
  error: unknown
  isBusy: boolean
  submit: (body: NewModelProvider) => void
}) {
  const [kind, setKind] = useState<string>('openai')
  const [typed, setName] = useState('')
  const [base_url, setAddress] = useState('')
  const [api_key, setKey] = useState('')
  const [protocol, setProtocol] = useState<'chat' | 'responses'>('chat')
  const [projects, setProjects] = useState<readonly string[] | null>(null)
  const isOther = kind === other
  const name = isOther ? typed.trim() : kind
  const reason = !/^[a-z][a-z0-9-]*$/.test(name)
    ? 'Enter a name of lowercase letters, digits and -'
    : isOther && base_url.trim() === ''
      ? 'Enter the base URL'
      : !isOther && api_key === '' && base_url.trim() === ''
        ? 'Enter the key'
        : projects?.length === 0
          ? 'Choose at least one project'
          : undefined
  return (
    <Form
      action="Add provider"
      reason={reason}
      error={error}
      isBusy={isBusy}
      submit={() =>
        submit({
          name,
          projects: projects === null ? null : [...projects],
          ...(base_url.trim() === '' ? {} : { base_url: base_url.trim() }),
          ...(api_key === '' ? {} : { api_key }),
          ...(isOther ? { protocol } : {}),
        })
      }
    >
      <Field field={isOther ? 'protocol' : 'name'} label="Kind">
        <SelectInput value={kind} onChange={({ target }) => setKind(target.value)}>
          <Options of={kinds} />
        </SelectInput>
      </Field>
      {isOther && (
        <Field field="name" label="Name" hint={`Its models are called ${name || 'name'}/model.`}>
          <TextInput
            value={typed}
            autoComplete="off"
            spellCheck={false}
            placeholder="acme"
            onChange={({ target }) => setName(target.value)}
          />
        </Field>
      )}
      <Field
        field="base_url"
        label={isOther ? 'Base URL' : 'Base URL (optional)'}
        hint={isOther ? 'The address before /chat/completions.' : undefined}
      >
        <TextInput
          inputMode="url"
          spellCheck={false}
          autoComplete="off"
          placeholder={isOther ? 'https://models.example.com/v1' : addresses[kind]}
          value={base_url}
          onChange={({ target }) => setAddress(target.value)}
        />
      </Field>
      {isOther && (
        <Field label="Protocol">
          <SelectInput value={protocol} onChange={({ target }) => setProtocol(target.value as typeof protocol)}>
            <Options of={{ chat: 'Chat Completions', responses: 'Responses' }} />
          </SelectInput>
        </Field>
      )}
      <KeyField isOptional={isOther} value={api_key} onChange={setKey} />
      <ProjectsField value={projects} onChange={setProjects} />
    </Form>
  )
}

/** Another key of a provider. */
export function RotateForm({
  action,
  error,
  isBusy,
  submit,
}: {
  action: string
  error: unknown
  isBusy: boolean
  submit: (api_key: string) => void
}) {
  const [api_key, setKey] = useState('')
  return (
    <Form
      action={action}
      reason={api_key === '' ? 'Enter the new key' : undefined}
      error={error}
      isBusy={isBusy}
      submit={() => submit(api_key)}
    >
      <KeyField value={api_key} onChange={setKey} label="New API key" />
    </Form>
  )
}

/** The projects that may use a provider. */
export function EnableForm({
  own,
  error,
  isBusy,
  submit,
}: {
  own: NonNullable<ModelProvider['own']>
  error: unknown
  isBusy: boolean
  submit: (projects: string[] | null) => void
}) {
  const [projects, setProjects] = useState<readonly string[] | null>(own.projects)
  return (
    <Form action="Save" error={error} isBusy={isBusy} submit={() => submit(projects === null ? null : [...projects])}>
      <ProjectsField value={projects} onChange={setProjects} />
    </Form>
  )
}

function KeyField({
  label = 'API key',
  isOptional = false,
  value,
  onChange,
}: {
  label?: string
  isOptional?: boolean
  value: string
  onChange: (value: string) => void
}) {
  return (
    <Field field="api_key" label={isOptional ? `${label} (optional)` : label} hint={storedSecretHint}>
      <SecretInput value={value} onChange={({ target }) => onChange(target.value)} />
    </Field>
  )
}

function ProjectsField({
  value,
  onChange,
}: {
  value: readonly string[] | null
  onChange: (value: readonly string[] | null) => void
}) {
  const { data } = useQuery(projectsQuery)
  return (
    <fieldset className="space-y-1">
      <legend className="mb-1 font-medium">Projects that may use it</legend>
      <Checkbox
        label="All projects, also new ones"
        checked={value === null}
        onChange={({ target }) => onChange(target.checked ? null : [])}
      />
      {value !== null && (
        <div className="grid max-h-48 gap-1 overflow-y-auto pl-6">
          {data?.items.map(({ id, name }) => (
            <Checkbox
              key={id}
              label={name}
              checked={value.includes(projectId(id))}
              onChange={({ target }) =>
                onChange(target.checked ? [...value, projectId(id)] : value.filter((one) => one !== projectId(id)))
              }
            />
          ))}
        </div>
      )}
    </fieldset>
  )
}
