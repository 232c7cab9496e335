import { useNavigate, type LinkProps } from '@tanstack/react-router'
import { useRef, useState, type ReactNode } from 'react'
import { toolKindLeads, toolKindNames, toolKinds, toolMethods } from '#contract/tools/tools.ts'
import { toolSafeties } from '#contract/tasks/task-lifecycle.ts'
import type { NewTool, ToolPreview } from '#sdk/types.ts'
import { fieldFault } from '../../api/error-text.ts'
import { Button } from '../../ui/button.tsx'
import { Choices } from '../../ui/forms/choices.tsx'
import { CopyAsCurl } from '../../ui/copy-as-curl.tsx'
import { ErrorBox } from '../../ui/error-box.tsx'
import { Field, SelectInput, TextArea, TextInput } from '../../ui/forms/field.tsx'
import { useFocusOnRefusal } from '../../ui/forms/refusal.ts'
import { Panel } from '../../ui/page.tsx'
import { Options } from '../parts/options.tsx'
import { UnsavedGuard } from '../parts/unsaved.tsx'
import { HeadersField } from './headers-field.tsx'
import { OfferedField } from './offered-field.tsx'
import { readDraft, type ToolDraft } from './tool-draft.ts'
import { safetyWords } from './tool-labels.ts'
import { TryPanel } from './try-panel.tsx'

/** A tool as a form, with a real call beside it. */
export function ToolForm({
  project_id,
  before,
  isNew,
  action,
  refused,
  request,
  save,
}: {
  project_id: string
  before: ToolDraft
  isNew: boolean
  action: string
  refused: string | undefined
  /** The request that saves it, for the shell. */
  request: { method: string; path: string }
  save: (body: NewTool, draft: ToolDraft) => Promise<LinkProps>
}) {
  const navigate = useNavigate()
  const [draft, setDraft] = useState(before)
  const [offered, setOffered] = useState<readonly ToolPreview['tools'][number][]>()
  const [error, setError] = useState<unknown>()
  const [isBusy, setBusy] = useState(false)
  const isSaved = useRef(false)
  const form = useFocusOnRefusal(error)
  const set = (change: Partial<ToolDraft>) => {
    setError(undefined)
    setDraft((now) => ({ ...now, ...change }))
  }
  const read = readDraft(draft)
  const body = 'body' in read ? read.body : undefined
  const fault = (field: string): string | undefined =>
    'fault' in read && read.fault.field === field ? read.fault.message : fieldFault(error, field)
  const { kind } = draft
  const missing =
    draft.name.trim() === ''
      ? 'Enter a name'
      : draft.description.trim() === ''
        ? 'Describe the tool: models decide by it when to call it'
        : kind !== 'client' && !(kind === 'openapi' && draft.source === 'document') && draft.url.trim() === ''
          ? 'Enter the address'
          : 'fault' in read
            ? read.fault.message
            : draft.operations?.length === 0
              ? 'Choose an operation'
              : undefined
  const submit = async (): Promise<void> => {
    if (!body || (refused ?? missing) !== undefined) return
    setBusy(true)
    setError(undefined)
    try {
      const link = await save(body, draft)
      isSaved.current = true
      await navigate(link)
    } catch (failure) {
      setError(failure)
    } finally {
      setBusy(false)
    }
  }
  const timeout = (hint: ReactNode) => (
    <Field
      label="Timeout in seconds (optional)"
      hint={hint}
      fault={fault(`${kind}.timeout_seconds`) ?? fault('timeout_seconds')}
    >
      <TextInput
        inputMode="decimal"
        className="!w-32"
        value={draft.timeout}
        onChange={({ target }) => set({ timeout: target.value })}
      />
    </Field>
  )
  const parameters = (
    <Field
      label="Arguments, as JSON Schema (optional)"
      hint="What the model fills in. Describe each one: models read the descriptions."
      fault={fault('parameters')}
    >
      <TextArea
        rows={8}
        spellCheck={false}
        className="font-mono !text-sm"
        placeholder={
          '{\n  "type": "object",\n  "properties": { "city": { "type": "string" } },\n  "required": ["city"]\n}'
        }
        value={draft.parameters}
        onChange={({ target }) => set({ parameters: target.value })}
      />
    </Field>
  )
  const headers = (
    <HeadersField value={draft.headers} onChange={(headers) => set({ headers })} fault={fault(`${kind}.headers`)} />
  )
  const offers = (
    <OfferedField
      project_id={project_id}
      read={() => body}
      refused={
        refused ??
        (body === undefined || (draft.source === 'url' && draft.url.trim() === '')
          ? 'Enter the address first'
          : undefined)
      }
      operations={draft.operations}
      onOperations={(operations) => set({ operations })}
      offered={offered}
      onOffered={setOffered}
    />
  )
  return (
    <div className="grid grid-cols-[minmax(0,1fr)] items-start gap-5 xl:grid-cols-[minmax(0,1fr)_minmax(0,28rem)]">
      <UnsavedGuard isUnsaved={() => !isSaved.current && JSON.stringify(draft) !== JSON.stringify(before)} />
      <form
        ref={form}
        className="min-w-0 space-y-5 rounded-lg border border-line bg-panel p-4"
        onSubmit={(event) => {
          event.preventDefault()
          void submit()
        }}
      >
        {isNew && (
          <div>
            <p className="mb-1 font-medium">Kind</p>
            <div className="overflow-x-auto">
              <Choices
                label="Kind"
                value={kind}
                options={toolKinds.map((one) => [one, toolKindNames[one]] as const)}
                onChange={(next) => {
                  setOffered(undefined)
                  set({ kind: next, operations: undefined })
                }}
              />
            </div>
            <p className="mt-1 text-sm text-soft">{toolKindLeads[kind]}</p>
          </div>
        )}
        <div className="grid gap-4 sm:grid-cols-2">
          <Field label="Name" hint="Agents refer to the tool by this name." fault={fault('name')}>
            <TextInput
              value={draft.name}
              spellCheck={false}
              autoComplete="off"
              placeholder={kind === 'mcp' ? 'github' : 'weather'}
              onChange={({ target }) => set({ name: target.value })}
            />
          </Field>
          <Field
            label="Safety"
            hint={
              draft.safety === '' ? 'What happens after a crash in the middle of a call.' : safetyWords[draft.safety]
            }
            fault={fault('safety')}
          >
            <SelectInput
              value={draft.safety}
              onChange={({ target }) => set({ safety: target.value as ToolDraft['safety'] })}
            >
              <Options
                of={{
                  '':
                    kind === 'http'
                      ? 'By the method: GET is safe'
                      : kind === 'openapi'
                        ? 'By each method'
                        : 'Unsafe (default)',
                  ...Object.fromEntries(toolSafeties.map((one) => [one, one])),
                }}
              />
            </SelectInput>
          </Field>
        </div>
        <Field label="Description" hint="Models read it to decide when to call the tool." fault={fault('description')}>
          <TextArea
            rows={2}
            value={draft.description}
            placeholder="The weather in a city, for up to a week."
            onChange={({ target }) => set({ description: target.value })}
          />
        </Field>
        {kind === 'http' && (
          <>
            <div className="grid gap-4 sm:grid-cols-[8rem_1fr]">
              <Field label="Method" fault={fault('http.method')}>
                <SelectInput
                  value={draft.method}
                  onChange={({ target }) => set({ method: target.value as ToolDraft['method'] })}
                >
                  <Options of={Object.fromEntries(toolMethods.map((one) => [one, one]))} />
                </SelectInput>
              </Field>
              <Field
                label="Address"
                hint="{city} takes the argument of that name. Other arguments go to the query, or into a JSON body."
                fault={fault('http.url')}
              >
                <TextInput
                  type="text"
                  inputMode="url"
                  spellCheck={false}
                  placeholder="https://api.example.com/v1/weather/{city}"
                  value={draft.url}
                  onChange={({ target }) => set({ url: target.value })}
                />
              </Field>
            </div>
            {parameters}
            {headers}
            {timeout('60 at most.')}
          </>
        )}
        {kind === 'openapi' && (
          <>
            <Choices
              label="Where the document is"
              value={draft.source}
              options={[
                ['url', 'From an address'],
                ['document', 'Paste it'],
              ]}
              onChange={(source) => set({ source })}
            />
            {draft.source === 'url' ? (
              <Field label="Address of the document" hint="OpenAPI 3.0 or 3.1, as JSON." fault={fault('openapi.url')}>
                <TextInput
                  inputMode="url"
                  spellCheck={false}
                  placeholder="https://api.example.com/openapi.json"
                  value={draft.url}
                  onChange={({ target }) => set({ url: target.value })}
                />
              </Field>
            ) : (
              <Field
                label="Document"
                hint="OpenAPI 3.0 or 3.1, as JSON."
                fault={draft.document === '' ? undefined : fault('openapi.document')}
              >
                <TextArea
                  rows={8}
                  spellCheck={false}
                  className="font-mono !text-sm"
                  placeholder={'{ "openapi": "3.1.0", "servers": […], "paths": {…} }'}
                  value={draft.document}
                  onChange={({ target }) => set({ document: target.value })}
                />
              </Field>
            )}
            <Field
              label="Address of the API (optional)"
              hint="In place of the first server of the document."
              fault={fault('openapi.base_url')}
            >
              <TextInput
                inputMode="url"
                spellCheck={false}
                value={draft.base_url}
                onChange={({ target }) => set({ base_url: target.value })}
              />
            </Field>
            {headers}
            {offers}
            {fault('openapi.operations') !== undefined && (
              <p className="text-sm font-medium text-bad">{fault('openapi.operations')}</p>
            )}
          </>
        )}
        {kind === 'mcp' && (
          <>
            <Field label="Address of the server" hint="Streamable HTTP." fault={fault('mcp.url')}>
              <TextInput
                inputMode="url"
                spellCheck={false}
                placeholder="https://mcp.example.com/mcp"
                value={draft.url}
                onChange={({ target }) => set({ url: target.value })}
              />
            </Field>
            {headers}
            {offers}
          </>
        )}
        {kind === 'client' && (
          <>
            {parameters}
            <Field
              label="Result, as JSON Schema (optional)"
              hint="A result that does not match is rejected."
              fault={fault('result_schema')}
            >
              <TextArea
                rows={4}
                spellCheck={false}
                className="font-mono !text-sm"
                value={draft.result_schema}
                onChange={({ target }) => set({ result_schema: target.value })}
              />
            </Field>
            {timeout('How long a call waits for its result. The default is 1 hour.')}
          </>
        )}
        <ErrorBox error={error} />
        <div className="flex flex-wrap items-center justify-end gap-2 border-t border-line pt-4">
          {body && <CopyAsCurl method={request.method} path={request.path} body={body} />}
          <Button kind="primary" type="submit" reason={refused ?? missing} disabled={isBusy}>
            {action}
          </Button>
        </div>
      </form>
      <Panel title={kind === 'client' ? 'How it is called' : 'Try it'} className="xl:sticky xl:top-16">
        <div className="p-4">
          {kind === 'client' ? (
            <ClientLead name={draft.name} />
          ) : (
            <TryPanel
              project_id={project_id}
              definition={body}
              choices={kind === 'http' ? undefined : (offered ?? []).filter(({ problem }) => problem === null)}
              refused={refused ?? (kind === 'http' && draft.url.trim() === '' ? 'Enter the address' : undefined)}
            />
          )}
        </div>
      </Panel>
    </div>
  )
}

/** What a process of the user's does to answer calls. */
export function ClientLead({ name }: { name: string }) {
  const called = name.trim() === '' ? 'refund' : name.trim()
  return (
    <div className="space-y-2">
      <p className="text-sm text-soft">
        Your process connects out, claims a call, and returns the result. It needs no address that is open to the
        internet.
      </p>
      <pre tabIndex={0} aria-label="Example" className="overflow-x-auto rounded-md border border-line bg-quiet p-3">
        {`await cadre.tools.serve({\n  '${called}': async (args) => {\n    return { done: true }\n  },\n})`}
      </pre>
    </div>
  )
}
