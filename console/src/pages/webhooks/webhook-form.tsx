import type { NewWebhook } from '#sdk/types.ts'
import { useState } from 'react'
import { Field, SelectInput, TextArea, TextInput } from '../../ui/forms/field.tsx'
import { Form } from '../../ui/forms/form.tsx'
import { Options } from '../parts/options.tsx'
import { subscriptions } from '#contract/events/events.ts'

type Subscription = NewWebhook['events'][number]

export interface WebhookValues {
  url: string
  events: Subscription[]
  filters?: NewWebhook['filters']
  secret?: string
  status?: 'active' | 'disabled'
}

/** A secret of 256 bits in the form of Standard Webhooks, made in this browser. */
export function newSecret(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(32))
  return `whsec_${btoa(String.fromCharCode(...bytes))}`
}

/** Where events go, and which. With `values` it changes a webhook; its secret is rotated elsewhere. */
export function WebhookForm({
  values,
  error,
  isBusy,
  submit,
}: {
  values?: Omit<WebhookValues, 'filters'> & { filters?: object }
  error: unknown
  isBusy: boolean
  submit: (values: WebhookValues) => void
}) {
  const [url, setUrl] = useState(values?.url ?? '')
  const [events, setEvents] = useState<Subscription[]>(values?.events ?? ['task.completed', 'task.failed'])
  const [status, setStatus] = useState(values?.status ?? 'active')
  const [filterText, setFilterText] = useState(
    values?.filters && Object.keys(values.filters).length > 0 ? JSON.stringify(values.filters, null, 2) : '',
  )
  const filters = filtersOf(filterText)
  const reason = !/^https?:\/\/\S+/.test(url)
    ? 'Enter an address that begins with https://'
    : events.length === 0
      ? 'Choose at least one event'
      : filters === undefined
        ? 'Fix the filters'
        : undefined
  const groups = Object.entries(Object.groupBy(subscriptions, (name) => name.split('.', 1)[0] ?? ''))
  return (
    <Form
      action={values ? 'Save' : 'Create webhook'}
      reason={reason}
      error={error}
      isBusy={isBusy}
      submit={() => submit({ url: url.trim(), events, filters, ...(values ? { status } : {}) })}
    >
      <Field field="url" label="Address" hint="Receives a POST for each event. It must be reachable by the service.">
        <TextInput
          type="url"
          value={url}
          onChange={(event) => setUrl(event.target.value)}
          placeholder="https://hooks.example.com/cadre"
        />
      </Field>
      <fieldset>
        <legend className="mb-1 text-sm font-medium">Events</legend>
        <div className="grid grid-cols-1 max-h-72 gap-3 overflow-y-auto rounded-md border border-line p-3 sm:grid-cols-2">
          {groups.map(([group, names = []]) => (
            <div key={group}>
              <div className="mb-1 text-xs font-semibold text-soft">{group}</div>
              {names.map((name) => {
                const covered = !name.endsWith('.*') && events.some((one) => one === `${group}.*`)
                return (
                  <label key={name} className="flex min-h-6 items-center gap-2 text-sm">
                    <input
                      type="checkbox"
                      className="size-4"
                      checked={covered || events.includes(name)}
                      disabled={covered}
                      onChange={(event) =>
                        setEvents(event.target.checked ? [...events, name] : events.filter((one) => one !== name))
                      }
                    />
                    <code className="font-mono text-xs">{name}</code>
                    {name.endsWith('.*') && <span className="text-xs text-soft">all of them</span>}
                  </label>
                )
              })}
            </div>
          ))}
        </div>
        <p className="mt-1 text-sm text-soft">Chosen: {events.join(', ') || 'none'}</p>
      </fieldset>
      <Field
        field="filters"
        label="Filters (optional)"
        hint="JSON: values that fields of an event’s data must have. Events without the field are sent too."
        fault={filters === undefined ? 'Enter a JSON object of lists, such as {"severity": ["high"]}' : undefined}
      >
        <TextArea
          className="font-mono !text-sm"
          spellCheck={false}
          rows={2}
          value={filterText}
          onChange={(event) => setFilterText(event.target.value)}
          placeholder='{"severity": ["high", "critical"]}'
        />
      </Field>
      {values && (
        <Field label="State" hint={status === 'disabled' ? 'Pending deliveries are given up.' : undefined}>
          <SelectInput value={status} onChange={(event) => setStatus(event.target.value as 'active' | 'disabled')}>
            <Options of={{ active: 'Active', disabled: 'Disabled' }} />
          </SelectInput>
        </Field>
      )}
    </Form>
  )
}

/** The filters that a text says; undefined where it says none that can be. An empty one has none. */
function filtersOf(text: string): Record<string, unknown[]> | undefined {
  if (text.trim() === '') return {}
  try {
    const value: unknown = JSON.parse(text)
    const isFilters = typeof value === 'object' && value !== null && !Array.isArray(value)
    return isFilters && Object.values(value).every((one) => Array.isArray(one))
      ? (value as Record<string, unknown[]>)
      : undefined
  } catch {
    return undefined
  }
}
