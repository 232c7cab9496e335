import { useQuery } from '@tanstack/react-query'
import { useState, type FormEvent } from 'react'
import { APIError } from '../../../../sdk/src/errors.ts'
import { DiffTable } from '../../agents/diff-table.tsx'
import { Snippets, type SnippetTexts } from '../../agents/snippets.tsx'
import { cadre } from '../../api/client.ts'
import { useSearchState } from '../../search-state.ts'
import { Button } from '../../ui/button.tsx'
import { ErrorBox } from '../../ui/error-box.tsx'
import { Checkbox, Field, TextArea, TextInput } from '../../ui/field.tsx'
import { Panel } from '../../ui/page.tsx'
import type { Draft } from './draft.ts'
import { EnvironmentFields } from './environment-fields.tsx'
import { JsonField } from './json-field.tsx'

const numbers = [
  ['temperature', 'Temperature', 'From 0; higher is freer.'],
  ['max_tokens', 'Tokens of an answer', 'At most.'],
  ['max_steps', 'Steps of a task', 'At most.'],
  ['timeout_seconds', 'Seconds of a task', 'At most.'],
  ['max_concurrent_tasks', 'Tasks at the same time', 'Those beyond it wait.'],
] as const

/** What an agent is made of, as a form or as JSON; complaints of the API stand at the fields that they are about. */
export function AgentForm({
  project_id,
  before,
  environmentNames = [],
  action,
  textsOf,
  save,
}: {
  project_id: string
  before: Draft
  /** Variables that are set already. */
  environmentNames?: readonly string[]
  action: string
  /** The request that the draft stands for. */
  textsOf: (draft: Draft) => SnippetTexts
  save: (draft: Draft) => Promise<void>
}) {
  const [search, change] = useSearchState<{ as?: string }>()
  const [draft, setDraft] = useState(before)
  const [error, setError] = useState<unknown>()
  const [isBusy, setBusy] = useState(false)
  const [jsonFault, setJsonFault] = useState<string>()
  const { config } = draft
  const isJson = search.as === 'json'
  const tools = useQuery({
    queryKey: ['project', project_id, 'tools', 'names'],
    queryFn: () => cadre.tools.list(project_id, { limit: 100 }).page(),
  })
  const models = useQuery({
    queryKey: ['project', project_id, 'agents', 'models'],
    queryFn: async () => {
      const { items } = await cadre.agents.list(project_id, { limit: 100 }).page()
      return [...new Set(['builtin/echo', ...items.map(({ config }) => config.model)])]
    },
  })

  const set = (members: Record<string, unknown>): void =>
    setDraft((draft) => ({ ...draft, config: without({ ...draft.config, ...members }) }))
  /** What the API says of a field, below the field or a part of it. */
  const fault = (field: string): string | undefined =>
    error instanceof APIError
      ? error.issues.find((issue) => issue.field === field || issue.field.startsWith(`${field}.`))?.message
      : undefined
  const text = (name: string): string => {
    const value = config[name]
    return typeof value === 'string' || typeof value === 'number' ? String(value) : ''
  }
  const chosen = Array.isArray(config.tools) ? (config.tools as string[]) : []
  const known = new Set([...(tools.data?.items.map(({ name }) => name) ?? []), ...chosen])

  async function submit(event: FormEvent): Promise<void> {
    event.preventDefault()
    setBusy(true)
    setError(undefined)
    try {
      await save(draft)
    } catch (failure) {
      setError(failure)
      setBusy(false)
    }
  }

  return (
    <form
      className="grid grid-cols-[minmax(0,1fr)] items-start gap-4 xl:grid-cols-[minmax(0,3fr)_minmax(0,2fr)]"
      onSubmit={(event) => void submit(event)}
    >
      <div className="space-y-4">
        <Panel title="What it is">
          <div className="space-y-4 p-4">
            <Field label="Name" fault={fault('name')} hint="Unique in the project.">
              <TextInput
                required
                autoComplete="off"
                value={draft.name}
                onChange={({ target: { value: name } }) => setDraft((draft) => ({ ...draft, name }))}
              />
            </Field>
            <Field label="Description" fault={fault('description')}>
              <TextInput
                autoComplete="off"
                value={draft.description}
                onChange={({ target: { value } }) => setDraft((draft) => ({ ...draft, description: value }))}
              />
            </Field>
          </div>
        </Panel>
        <Panel
          title="Configuration"
          actions={
            <span role="group" aria-label="Show as" className="flex gap-1">
              <Button
                kind={isJson ? 'ghost' : 'plain'}
                aria-pressed={!isJson}
                onClick={() => change({ as: undefined })}
              >
                Form
              </Button>
              <Button kind={isJson ? 'plain' : 'ghost'} aria-pressed={isJson} onClick={() => change({ as: 'json' })}>
                JSON
              </Button>
            </span>
          }
        >
          <div className="space-y-4 p-4">
            {isJson ? (
              <JsonField
                value={config}
                fault={jsonFault ?? fault('config')}
                onChange={(config) => setDraft((draft) => ({ ...draft, config }))}
                onFault={setJsonFault}
              />
            ) : (
              <>
                <Field
                  label="Model"
                  fault={fault('config.model')}
                  hint="provider/model. builtin/echo needs no provider: it answers with its input."
                >
                  <TextInput
                    list="models"
                    autoComplete="off"
                    spellCheck={false}
                    value={text('model')}
                    onChange={(event) => set({ model: event.target.value })}
                  />
                </Field>
                <datalist id="models">
                  {models.data?.map((model) => (
                    <option key={model} value={model} />
                  ))}
                </datalist>
                <Field
                  label="Instructions"
                  fault={fault('config.system_prompt')}
                  hint="What it is told before every task."
                >
                  <TextArea
                    rows={10}
                    value={text('system_prompt')}
                    onChange={(event) => set({ system_prompt: event.target.value || undefined })}
                  />
                </Field>
                <fieldset>
                  <legend className="mb-1 font-medium">Tools</legend>
                  {known.size === 0 && <p className="text-soft">No tool is registered in this project.</p>}
                  <div className="grid gap-1 sm:grid-cols-2">
                    {[...known].map((name) => (
                      <Checkbox
                        key={name}
                        label={<code>{name}</code>}
                        checked={chosen.includes(name)}
                        onChange={({ target }) =>
                          set({ tools: target.checked ? [...chosen, name] : chosen.filter((one) => one !== name) })
                        }
                      />
                    ))}
                  </div>
                  {fault('config.tools') && (
                    <p className="mt-1 text-sm font-medium text-bad">{fault('config.tools')}</p>
                  )}
                </fieldset>
                <div className="grid gap-4 sm:grid-cols-2">
                  {numbers.map(([name, label, hint]) => (
                    <Field key={name} label={label} hint={hint} fault={fault(`config.${name}`)}>
                      <TextInput
                        type="number"
                        step="any"
                        value={text(name)}
                        onChange={({ target: { value } }) => set({ [name]: value === '' ? undefined : Number(value) })}
                      />
                    </Field>
                  ))}
                </div>
              </>
            )}
          </div>
        </Panel>
        <EnvironmentFields
          names={environmentNames}
          value={draft.environment}
          fault={fault('config.environment_variables')}
          onChange={(environment) => setDraft((draft) => ({ ...draft, environment }))}
        />
        <ErrorBox error={error} />
        <Button kind="primary" type="submit" disabled={isBusy || jsonFault !== undefined || draft.name.trim() === ''}>
          {action}
        </Button>
      </div>
      <div className="space-y-4 xl:sticky xl:top-16">
        <Panel title="What changes">
          <div className="p-4">
            <DiffTable
              label="What changes"
              before={{ name: before.name, description: before.description, config: before.config }}
              after={{ name: draft.name, description: draft.description, config }}
            />
          </div>
        </Panel>
        <Panel title="The same as a request">
          <div className="p-4">
            <Snippets texts={textsOf(draft)} />
          </div>
        </Panel>
      </div>
    </form>
  )
}

function without(config: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(config).filter(([, value]) => value !== undefined))
}
