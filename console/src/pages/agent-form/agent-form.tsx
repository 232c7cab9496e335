import { useState, type FormEvent, type ReactNode } from 'react'
import { isObject } from '../../../../contract/src/merge-patch.ts'
import { APIError } from '../../../../sdk/src/errors.ts'
import { differences } from '../../agents/config-diff.ts'
import { DiffTable } from '../../agents/diff-table.tsx'
import { Snippets, type SnippetTexts } from '../../agents/snippets.tsx'
import { useSearchState } from '../../search-state.ts'
import { Button } from '../../ui/button.tsx'
import { ErrorBox } from '../../ui/error-box.tsx'
import { Field, TextArea, TextInput } from '../../ui/field.tsx'
import { Panel } from '../../ui/page.tsx'
import { complaintAt, type Refused } from './complaints.ts'
import { comparable, type Draft } from './draft.ts'
import { EnvironmentFields } from './environment-fields.tsx'
import { JsonField } from './json-field.tsx'
import { ModelField } from './model-field.tsx'
import { ToolsField } from './tools-field.tsx'
import { TryPanel } from './try-panel.tsx'

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
  saved,
}: {
  project_id: string
  before: Draft
  /** Variables that are set already. */
  environmentNames?: readonly string[]
  action: string
  /** The request that the draft stands for. */
  textsOf: (draft: Draft) => SnippetTexts
  save: (draft: Draft) => Promise<void>
  /** The agent that is changed, which can be tried; `keep` saves and stays here. */
  saved?: { agent_id: string; keep: (draft: Draft) => Promise<void> }
}) {
  const [search, change] = useSearchState<{ as?: string }>()
  const [draft, setDraft] = useState(before)
  const [tagText, setTagText] = useState(before.tags.join(', '))
  const [error, setError] = useState<unknown>()
  const [isBusy, setBusy] = useState(false)
  const [jsonFault, setJsonFault] = useState<string>()
  const { config } = draft
  const isJson = search.as === 'json'
  const set = (members: Record<string, unknown>): void =>
    setDraft((draft) => ({ ...draft, config: without({ ...draft.config, ...members }) }))
  const [refused, setRefused] = useState<Refused>()
  /** What is wrong with a field or a part of it: as one types, or of what was sent. */
  const fault = (field: string): ReactNode => {
    const complaint = complaintAt(field, { draft, before, sent: refused })
    if (!complaint) return undefined
    const { message, code } = complaint
    return (
      <>
        {message} <code className="font-normal text-soft">{code}</code>
      </>
    )
  }
  const text = (name: string): string => {
    const value = config[name]
    return typeof value === 'string' || typeof value === 'number' ? String(value) : ''
  }
  /** Whether the service took it; what it refused stands at the fields. */
  async function run(act: (draft: Draft) => Promise<void>): Promise<boolean> {
    setBusy(true)
    setError(undefined)
    setRefused(undefined)
    try {
      await act(draft)
      return true
    } catch (failure) {
      setError(failure)
      setRefused(failure instanceof APIError ? { draft, issues: failure.issues } : undefined)
      return false
    } finally {
      setBusy(false)
    }
  }
  const isChanged =
    differences(comparable(before), comparable(draft)).length > 0 || Object.keys(draft.environment).length > 0
  const submit = async (event: FormEvent): Promise<void> => {
    event.preventDefault()
    await run(save)
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
            <Field
              label="Tags"
              fault={fault('metadata.tags') ?? fault('metadata')}
              hint="Words with commas between: agents are found by them."
            >
              <TextInput
                autoComplete="off"
                value={tagText}
                onChange={({ target: { value } }) => {
                  setTagText(value)
                  setDraft((draft) => ({ ...draft, tags: tagsIn(value) }))
                }}
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
                <ModelField
                  project_id={project_id}
                  value={text('model')}
                  fault={fault('config.model')}
                  onChange={(model) => set({ model })}
                />
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
                <ToolsField
                  project_id={project_id}
                  chosen={Array.isArray(config.tools) ? (config.tools as string[]) : []}
                  policies={isObject(config.tool_policies) ? (config.tool_policies as Record<string, string>) : {}}
                  fault={fault('config.tools') ?? fault('config.tool_policies')}
                  change={({ tools, tool_policies }) =>
                    set({
                      ...(tools ? { tools } : {}),
                      ...(tool_policies
                        ? { tool_policies: Object.keys(tool_policies).length === 0 ? undefined : tool_policies }
                        : {}),
                    })
                  }
                />
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
        {saved && (
          <TryPanel
            project_id={project_id}
            agent_id={saved.agent_id}
            isChanged={isChanged}
            saveFirst={async () => {
              const isSaved = await run(saved.keep)
              // Values of variables that are written are not shown again.
              if (isSaved) setDraft((draft) => ({ ...draft, environment: {} }))
              return isSaved
            }}
          />
        )}
        <Panel title="What changes">
          <div className="p-4">
            <DiffTable label="What changes" before={comparable(before)} after={comparable(draft)} />
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

/** Words between commas, each once. */
function tagsIn(text: string): string[] {
  return [...new Set(text.split(',').map((tag) => tag.trim()))].filter((tag) => tag !== '')
}

function without(config: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(config).filter(([, value]) => value !== undefined))
}
