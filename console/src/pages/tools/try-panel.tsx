import { useMutation } from '@tanstack/react-query'
import { useMemo, useState } from 'react'
import { isObject } from '#contract/core/merge-patch.ts'
import { toolTrialBounds } from '#contract/tools/tool-trials.ts'
import type { NewTool, ToolTrial } from '#sdk/types.ts'
import { skeletonOf } from '../../agents/schema-skeleton.ts'
import { notJson } from '../../agents/schema-text.ts'
import { api } from '../../api/client.ts'
import { formatDuration } from '../../format.ts'
import { Button } from '../../ui/button.tsx'
import { CopyAsCurl } from '../../ui/copy-as-curl.tsx'
import { CodeBlock } from '../../ui/copy.tsx'
import { ErrorBox } from '../../ui/error-box.tsx'
import { Field, SecretInput, SelectInput, TextArea } from '../../ui/forms/field.tsx'
import { Badge } from '../../ui/status.tsx'
import { textOf } from '../../task-parts/value-view.tsx'
import { Options } from '../parts/options.tsx'
import { environmentNames } from './tool-draft.ts'

/** Makes one real call of a definition, and shows both sides of it. */
export function TryPanel({
  project_id,
  definition,
  choices,
  refused,
}: {
  project_id: string
  /** Undefined where what was typed cannot be read. */
  definition: NewTool | undefined
  /** Of a server or a document: its tools, and what each takes. */
  choices?: readonly { name: string; parameters: Record<string, unknown> }[] | undefined
  refused: string | undefined
}) {
  const [chosen, setChosen] = useState<string>()
  const tool = choices?.find(({ name }) => name === chosen) ?? choices?.[0]
  const schema = choices ? tool?.parameters : definition?.parameters
  const skeleton = useMemo(() => JSON.stringify(skeletonOf(schema ?? {}), undefined, 2), [JSON.stringify(schema)])
  // What was typed stands until another tool, or another schema, is tried.
  const [typed, setTyped] = useState<{ of: string; text: string }>()
  const text = typed?.of === skeleton ? typed.text : skeleton
  const read = readArguments(text)
  const names = definition ? environmentNames(definition) : []
  const [values, setValues] = useState<Record<string, string>>({})
  const environment_variables = Object.fromEntries(names.map((name) => [name, values[name] ?? '']))
  const body = definition && {
    ...withoutWords(definition),
    ...(tool ? { tool: tool.name } : {}),
    arguments: 'fault' in read ? {} : read.value,
  }
  const attempt = useMutation({
    // The answer may hold what is not for keeping.
    gcTime: 0,
    mutationFn: () => api.tools.try(project_id, { ...body!, ...(names.length === 0 ? {} : { environment_variables }) }),
  })
  const method = definition?.http?.method
  const reason =
    refused ??
    (definition === undefined
      ? 'The definition is not valid yet'
      : choices?.length === 0
        ? 'Load the definitions first'
        : 'fault' in read
          ? read.fault
          : undefined)
  return (
    <div className="space-y-3">
      <p className="text-sm text-soft">
        The call is real
        {method === undefined || method === 'GET' ? '' : `, and ${method} may change something at the receiver`}. It
        goes out from the service, like a call of an agent.
      </p>
      {choices && choices.length > 1 && (
        <Field label="Tool to try">
          <SelectInput value={tool?.name ?? ''} onChange={({ target }) => setChosen(target.value)}>
            <Options of={Object.fromEntries(choices.map(({ name }) => [name, name]))} />
          </SelectInput>
        </Field>
      )}
      <Field label="Arguments" fault={'fault' in read ? read.fault : undefined} hint="As a model would send them.">
        <TextArea
          rows={5}
          spellCheck={false}
          className="font-mono !text-sm"
          value={text}
          onChange={({ target }) => setTyped({ of: skeleton, text: target.value })}
        />
      </Field>
      {names.map((name) => (
        <Field key={name} label={`Value of \${env.${name}}`} hint="Used for this call only, and not stored.">
          <SecretInput
            value={values[name] ?? ''}
            onChange={({ target }) => setValues({ ...values, [name]: target.value })}
          />
        </Field>
      ))}
      <div className="flex flex-wrap items-center gap-2">
        <Button kind="primary" reason={reason} disabled={attempt.isPending} onClick={() => attempt.mutate()}>
          {attempt.isPending ? 'Calling…' : 'Send the call'}
        </Button>
        {body && <CopyAsCurl method="POST" path={`/api/v1/projects/${project_id}/tools/try`} body={body} />}
      </div>
      <ErrorBox error={attempt.error} />
      {attempt.data && <Outcome trial={attempt.data} />}
    </div>
  )
}

function withoutWords({
  description: _,
  ...definition
}: NewTool): Omit<NewTool, 'description' | 'name'> & { name?: string } {
  const { name, ...rest } = definition
  return name === '' ? rest : { name, ...rest }
}

function readArguments(text: string): { value: Record<string, unknown> } | { fault: string } {
  if (text.trim() === '') return { value: {} }
  try {
    const value: unknown = JSON.parse(text)
    return isObject(value) ? { value } : { fault: 'Arguments are a JSON object' }
  } catch (error) {
    return { fault: notJson(error) }
  }
}

function Outcome({ trial: { request, response, content, error, duration_ms } }: { trial: ToolTrial }) {
  return (
    <section aria-label="Outcome" className="space-y-3">
      <p role="status" className="flex flex-wrap items-center gap-2">
        {error ? <Badge tone="bad">Failed</Badge> : <Badge tone="good">Worked</Badge>}
        {response && <span>HTTP {response.status}</span>}
        <span className="text-soft">{formatDuration(duration_ms)}</span>
      </p>
      {error && (
        <p className="text-bad">
          {error.message} <code>{error.code}</code>
        </p>
      )}
      {request && (
        <div>
          <h3 className="mb-1 text-sm font-medium">Request, secrets hidden</h3>
          <CodeBlock
            label="Copy the request"
            text={[`${request.method} ${request.url}`, ...lines(request.headers), ...bodyLines(request.body)].join(
              '\n',
            )}
          />
        </div>
      )}
      {response && (
        <div>
          <h3 className="mb-1 text-sm font-medium">Answer</h3>
          <CodeBlock
            label="Copy the answer"
            text={[`HTTP ${response.status}`, ...lines(response.headers), ...bodyLines(response.body)].join('\n')}
          />
        </div>
      )}
      {content !== null && (!response || content !== response.body) && (
        <div>
          <h3 className="mb-1 text-sm font-medium">What the model sees</h3>
          <CodeBlock
            label="Copy what the model sees"
            text={textOf(content.slice(0, toolTrialBounds.shown_characters))}
          />
        </div>
      )}
    </section>
  )
}

function lines(headers: Record<string, string>): string[] {
  return Object.entries(headers).map(([name, value]) => `${name}: ${value}`)
}

function bodyLines(body: string | null): string[] {
  return body === null || body === '' ? [] : ['', textOf(body)]
}
