import { useState } from 'react'
import type { NewTrigger } from '#sdk/types.ts'
import {
  sourceDefinitions,
  triggerSources,
  type FilterCondition,
  type TriggerAction,
  type TriggerSource,
} from '#contract/doors/trigger-sources.ts'
import { AgentField } from '../../agents/agent-picker.tsx'
import { Field, SecretInput, SelectInput, TextArea, TextInput } from '../../ui/forms/field.tsx'
import { Form } from '../../ui/forms/form.tsx'
import { Options } from '../parts/options.tsx'

/** What a form says; on a change without what stays. */
export type TriggerValues = Omit<NewTrigger, 'input' | 'thread_key'> & {
  input: NewTrigger['input'] | null
  thread_key: string | null
}

/** Sources as people know them. */
export const sourceNames: Record<TriggerSource, string> = {
  github: 'GitHub',
  gitlab: 'GitLab',
  slack: 'Slack',
  stripe: 'Stripe',
  linear: 'Linear',
  standard_webhooks: 'Standard Webhooks',
  email: 'E-mail',
  hmac: 'Any, signed by HMAC',
  bearer: 'Any, with a token',
}
const actionNames = { start: 'Start a task', message: 'Answer a waiting task, or start one' }

/** Who delivers, to which agent, and what it is asked. With `values` it changes a trigger; agent and source stay. */
export function TriggerForm({
  project_id,
  values,
  error,
  isBusy,
  submit,
}: {
  project_id: string
  values?: TriggerValues
  error: unknown
  isBusy: boolean
  submit: (values: TriggerValues) => void
}) {
  const [name, setName] = useState(values?.name ?? '')
  const [agent_id, setAgent] = useState<string | undefined>(values?.agent_id)
  const [source, setSource] = useState<TriggerSource>(values?.source ?? 'github')
  const [secret, setSecret] = useState('')
  const [header, setHeader] = useState(values?.hmac?.header ?? 'X-Signature')
  const [prefix, setPrefix] = useState(values?.hmac?.prefix ?? '')
  const [filterText, setFilterText] = useState(
    values?.filter && values.filter.length > 0 ? JSON.stringify(values.filter, null, 2) : '',
  )
  const isData = typeof values?.input === 'object' && values.input !== null
  const [input, setInput] = useState(isData ? JSON.stringify(values.input, null, 2) : ((values?.input as string) ?? ''))
  const [thread_key, setThreadKey] = useState(values?.thread_key ?? '')
  const [action, setAction] = useState<TriggerAction>(values?.action ?? 'start')
  const filter = parsed(filterText, [], (value) => Array.isArray(value)) as FilterCondition[] | undefined
  const data = input.trimStart().startsWith('{"') || isData ? parsed(input, undefined, isObject) : undefined
  const asksSecret = !values && sourceDefinitions[source].secret_given
  const reason =
    name.trim() === ''
      ? 'Enter a name'
      : agent_id === undefined
        ? 'Choose an agent'
        : asksSecret && secret === ''
          ? `Enter the secret that ${sourceNames[source]} shows`
          : filter === undefined
            ? 'Fix the filter'
            : action === 'message' && thread_key.trim() === ''
              ? 'Enter a thread key: it selects the task to answer'
              : undefined
  const send = (): void =>
    submit({
      ...{ name: name.trim(), agent_id: agent_id!, source, filter: filter!, action },
      ...(secret === '' ? {} : { secret }),
      ...(source === 'hmac' ? { hmac: { ...values?.hmac, header, ...(prefix === '' ? {} : { prefix }) } } : {}),
      input: (data as Record<string, unknown> | undefined) ?? (input.trim() === '' ? null : input),
      thread_key: thread_key.trim() === '' ? null : thread_key.trim(),
    })
  return (
    <Form action={values ? 'Save' : 'Create trigger'} reason={reason} error={error} isBusy={isBusy} submit={send}>
      <Field field="name" label="Name">
        <TextInput value={name} onChange={(event) => setName(event.target.value)} placeholder="New issues" />
      </Field>
      {!values && (
        <>
          <AgentField project_id={project_id} value={agent_id} onChange={setAgent} />
          <Field label="Source" hint="Sets how deliveries are authenticated.">
            <SelectInput value={source} onChange={(event) => setSource(event.target.value as TriggerSource)}>
              <Options of={Object.fromEntries(triggerSources.map((one) => [one, sourceNames[one]]))} />
            </SelectInput>
          </Field>
        </>
      )}
      {asksSecret && (
        <Field field="secret" label="Secret" hint={`${sourceNames[source]} makes it, and shows it in its settings.`}>
          <SecretInput value={secret} onChange={(event) => setSecret(event.target.value)} />
        </Field>
      )}
      {source === 'hmac' && (
        <div className="grid gap-4 sm:grid-cols-2">
          <Field field="hmac.header" label="Signature header">
            <TextInput value={header} onChange={(event) => setHeader(event.target.value)} />
          </Field>
          <Field field="hmac.prefix" label="Signature prefix (optional)">
            <TextInput value={prefix} onChange={(event) => setPrefix(event.target.value)} placeholder="sha256=" />
          </Field>
        </div>
      )}
      <Field
        field="filter"
        label="Filter (optional)"
        hint="JSON: conditions that must all hold, by eq, ne, in, exists or contains."
        fault={filter === undefined ? 'Enter a JSON list of conditions' : undefined}
      >
        <TextArea
          className="font-mono !text-sm"
          spellCheck={false}
          rows={2}
          value={filterText}
          onChange={(event) => setFilterText(event.target.value)}
          placeholder='[{"path": "body.action", "op": "eq", "value": "opened"}]'
        />
      </Field>
      <Field
        field="input"
        label="Task input (optional)"
        hint="{{body.…}} stands for what was delivered, marked as data from outside. Without it the agent gets the whole body."
      >
        <TextArea
          rows={3}
          value={input}
          onChange={(event) => setInput(event.target.value)}
          placeholder="Sort this issue into one of our areas: {{body.issue.title}}"
        />
      </Field>
      <Field
        field="thread_key"
        label="Thread key (optional)"
        hint="Deliveries with the same key continue one conversation."
      >
        <TextInput
          value={thread_key}
          onChange={(event) => setThreadKey(event.target.value)}
          placeholder="{{body.repository.full_name}}#{{body.issue.number}}"
        />
      </Field>
      <Field label="On delivery">
        <SelectInput value={action} onChange={(event) => setAction(event.target.value as TriggerAction)}>
          <Options of={actionNames} />
        </SelectInput>
      </Field>
    </Form>
  )
}

function isObject(value: unknown): boolean {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The JSON of a text, or what an empty one means; undefined where it is none of the kind. */
function parsed(text: string, empty: unknown, isKind: (value: unknown) => boolean): unknown {
  if (text.trim() === '') return empty
  try {
    const value: unknown = JSON.parse(text)
    return isKind(value) ? value : undefined
  } catch {
    return undefined
  }
}
