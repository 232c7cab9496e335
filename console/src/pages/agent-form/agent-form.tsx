import { useNavigate, type LinkProps } from '@tanstack/react-router'
import { useRef, useState, type ReactNode } from 'react'
import { isObject } from '#contract/core/merge-patch.ts'
import { APIError } from '#sdk/errors.ts'
import { capitalized } from '../../api/error-text.ts'
import { differences } from '../../agents/config-diff.ts'
import { DiffTable } from '../../agents/diff-table.tsx'
import { Snippets, type SnippetTexts } from '../../agents/snippets.tsx'
import { useSearchState } from '../../search-state.ts'
import { Button } from '../../ui/button.tsx'
import { ErrorBox } from '../../ui/error-box.tsx'
import { useFocusOnRefusal } from '../../ui/forms/refusal.ts'
import { Panel } from '../../ui/page.tsx'
import { UnsavedGuard } from '../parts/unsaved.tsx'
import { AboutFields } from './about-fields.tsx'
import { complaintAt, type Refused } from './complaints.ts'
import { ConfigFields, type SchemaMember } from './config-fields.tsx'
import { broughtTo, comparable, type Draft } from './draft.ts'
import { EnvironmentFields } from './environment-fields.tsx'
import { JsonField } from './json-field.tsx'
import { TryPanel } from './try-panel.tsx'
import { useDisabledReason } from '../../api/disabled-reason.ts'

/** What an agent is made of, as a form or as JSON; complaints of the API stand at the fields that they are about. */
export function AgentForm({
  project_id,
  before,
  environmentNames = [],
  action,
  textsOf,
  save,
  saveAndTry,
  saved,
}: {
  project_id: string
  before: Draft
  /** Variables that are set already. */
  environmentNames?: readonly string[]
  action: string
  /** The request that the draft stands for. */
  textsOf: (draft: Draft) => SnippetTexts
  /** Saves it, and gives where to go then. */
  save: (draft: Draft) => Promise<LinkProps>
  /** Saves an agent that is new, and gives where it can be tried beside its form. */
  saveAndTry?: (draft: Draft) => Promise<LinkProps>
  /** The agent that is changed, which can be tried. */
  saved?: {
    agent_id: string
    /** Saves and stays here. */
    keep: (draft: Draft) => Promise<void>
    /** Reads how it is by now, which is what is compared with from then on. */
    readAgain: () => Promise<Draft>
  }
}) {
  const [search, change] = useSearchState<{ as?: string }>()
  const [draft, setDraft] = useState(before)
  const [error, setError] = useState<unknown>()
  const [isBusy, setBusy] = useState(false)
  const [jsonFault, setJsonFault] = useState<string>()
  const [metadataFault, setMetadataFault] = useState<string>()
  const [schemaFaults, setSchemaFaults] = useState<Partial<Record<SchemaMember, string | undefined>>>({})
  /** Rises where the draft is replaced by another. */
  const [edition, setEdition] = useState(0)
  const isSaved = useRef(false)
  const form = useFocusOnRefusal(error)
  const navigate = useNavigate()
  const { config } = draft
  const isSchemaBroken = Object.values(schemaFaults).some((fault) => fault !== undefined)
  // What is no JSON yet has no form, and a schema that is none yet is only in the form.
  const isJson = (search.as === 'json' && !isSchemaBroken) || jsonFault !== undefined
  const setConfig = (config: Draft['config']): void => setDraft((draft) => ({ ...draft, config }))
  const [refused, setRefused] = useState<Refused>()
  /** What is wrong with a field or a part of it: as one types, or of what was sent. */
  const fault = (field: string): ReactNode => {
    const complaint = complaintAt(field, { draft, before, sent: refused })
    if (!complaint) return undefined
    const { message, code } = complaint
    // Of a part of what the field holds: which.
    const path = complaint.field.slice(field.length).replace(/^[.]/, '')
    return (
      <>
        {path !== '' && !message.includes(path) && (
          <>
            <code className="wrap-anywhere">{path}</code>:{' '}
          </>
        )}
        {path === '' ? capitalized(message) : message} <code className="font-normal text-soft">{code}</code>
      </>
    )
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
  const compared = { before: comparable(before, environmentNames), after: comparable(draft, environmentNames) }
  const isChanged = differences(compared.before, compared.after).length > 0
  const mayNot = useDisabledReason('agents')
  const reason =
    mayNot ??
    (draft.name.trim() === ''
      ? 'It needs a name'
      : jsonFault !== undefined
        ? 'The configuration is not valid JSON'
        : metadataFault !== undefined
          ? 'The metadata is not valid JSON'
          : schemaFaults.input_schema !== undefined
            ? 'The input schema is not valid'
            : schemaFaults.output_schema !== undefined
              ? 'The output schema is not valid'
              : saved && !isChanged
                ? 'No changes to save'
                : undefined)
  const leaveBy = async (act: (draft: Draft) => Promise<LinkProps>): Promise<void> => {
    if (reason !== undefined || isBusy) return
    await run(async (draft) => {
      const to = await act(draft)
      isSaved.current = true
      await navigate(to as never)
    })
  }
  const readAgain = saved && isConflict(error) ? saved.readAgain : undefined
  const bring = (): Promise<boolean> =>
    run(async (draft) => {
      const fresh = await readAgain!()
      setDraft(broughtTo(fresh, before, draft))
      setEdition((edition) => edition + 1)
    })

  return (
    <form
      ref={form}
      className="grid grid-cols-[minmax(0,1fr)] items-start gap-4 xl:grid-cols-[minmax(0,3fr)_minmax(0,2fr)]"
      onSubmit={(event) => {
        event.preventDefault()
        void leaveBy(save)
      }}
    >
      <UnsavedGuard
        isUnsaved={() =>
          (isChanged || jsonFault !== undefined || metadataFault !== undefined || isSchemaBroken) && !isSaved.current
        }
      />
      <div className="space-y-4">
        <AboutFields
          key={edition}
          draft={draft}
          fault={fault}
          change={(members) => setDraft((draft) => ({ ...draft, ...members }))}
          metadataFault={metadataFault}
          onMetadataFault={setMetadataFault}
        />
        <Panel
          title="Configuration"
          actions={
            <span role="group" aria-label="Show as" className="flex gap-1">
              <Button
                kind={isJson ? 'ghost' : 'plain'}
                aria-pressed={!isJson}
                reason={jsonFault === undefined ? undefined : 'Fix the JSON first'}
                onClick={() => change({ as: undefined })}
              >
                Form
              </Button>
              <Button
                kind={isJson ? 'plain' : 'ghost'}
                aria-pressed={isJson}
                reason={isSchemaBroken ? 'A schema is not valid: fix it first' : undefined}
                onClick={() => change({ as: 'json' })}
              >
                JSON
              </Button>
            </span>
          }
        >
          <div className="space-y-4 p-4">
            {isJson ? (
              <JsonField
                key={edition}
                label="Configuration as JSON"
                hint="Every member that the API takes."
                rows={24}
                value={config}
                fault={jsonFault ?? fault('config')}
                onChange={setConfig}
                onFault={setJsonFault}
              />
            ) : (
              <ConfigFields
                key={edition}
                project_id={project_id}
                config={config}
                fault={fault}
                schemaFaults={schemaFaults}
                onSchemaFault={(member, fault) => setSchemaFaults((faults) => ({ ...faults, [member]: fault }))}
                change={setConfig}
              />
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
        {readAgain && (
          <div className="rounded-md border border-line bg-panel p-3">
            <p className="mb-2 text-soft">
              The agent was changed since you opened this form. Nothing you typed is lost: reload, review the changes,
              and save.
            </p>
            <Button disabled={isBusy} onClick={() => void bring()}>
              Reload and keep my changes
            </Button>
          </div>
        )}
        <Button kind="primary" type="submit" disabled={isBusy} reason={reason}>
          {action}
        </Button>
      </div>
      <div className="space-y-4 xl:sticky xl:top-16">
        {saved && (
          <TryPanel
            project_id={project_id}
            agent_id={saved.agent_id}
            input_schema={isObject(config.input_schema) ? config.input_schema : undefined}
            isChanged={isChanged}
            saveFirst={async () => {
              const isSaved = await run(saved.keep)
              // Values of variables that are written are not shown again.
              if (isSaved) setDraft((draft) => ({ ...draft, environment: {} }))
              return isSaved
            }}
          />
        )}
        {saveAndTry && (
          <Panel title="Try it">
            <div className="space-y-3 p-4">
              <p className="text-soft">Create the agent, then try it here while you go on with its settings.</p>
              <Button disabled={isBusy} reason={reason} onClick={() => void leaveBy(saveAndTry)}>
                Create and try
              </Button>
            </div>
          </Panel>
        )}
        <Panel title="What changes">
          <div className="p-4">
            <DiffTable label="What changes" {...compared} />
          </div>
        </Panel>
        <Panel title="As an API request">
          <div className="p-4">
            <Snippets texts={textsOf(draft)} />
          </div>
        </Panel>
      </div>
    </form>
  )
}

/** Whether the change is refused because the agent was changed meanwhile. */
function isConflict(error: unknown): boolean {
  return error instanceof APIError && error.status === 412
}
