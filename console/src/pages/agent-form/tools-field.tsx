import { toolKindNames } from '#contract/tools/tools.ts'
import { useQuery } from '@tanstack/react-query'
import { useState, type ReactNode } from 'react'
import { builtinToolDefinitions, safeHttpMethods } from '#contract/tools/builtin-tools.ts'
import { toolPolicies } from '#contract/tasks/task-lifecycle.ts'
import { api } from '../../api/client.ts'
import { ErrorBox } from '../../ui/error-box.tsx'
import { Checkbox, FilterSelect } from '../../ui/forms/field.tsx'
import { Skeleton } from '../../ui/skeleton.tsx'
import { Badge } from '../../ui/status.tsx'
import { WithCode } from '../../ui/with-code.tsx'

type Safety = 'safe' | 'keyed' | 'unsafe' | null
type Policies = Record<string, string>

const risks = {
  safe: ['good', 'safe', 'Changes nothing: a call is repeated after a crash.'],
  keyed: ['info', 'keyed', 'The receiver knows repetitions: a call is repeated after a crash.'],
  unsafe: ['warn', 'unsafe', 'May change something: after a crash in the middle of a call a person is asked.'],
} as const
const readingIsSafe = `${[...safeHttpMethods].join(' and ')} are safe, all else is not.`
const policyWords = { auto: 'call it', ask: 'ask a person first', deny: 'never' } as const

interface Choice {
  chosen: readonly string[]
  policies: Policies
  change: (members: { tools?: string[]; tool_policies?: Policies }) => void
}

/** What the agent may call: tools of the service and of the project, with what a call of each may do, and who is asked before. */
export function ToolsField({ project_id, fault, ...choice }: Choice & { project_id: string; fault: ReactNode }) {
  const tools = useQuery({
    queryKey: ['project', project_id, 'tools', 'names'],
    queryFn: () => api.tools.list(project_id, { limit: 100 }).page(),
  })
  const registered = tools.data?.items ?? []
  const known = new Set([...Object.keys(builtinToolDefinitions), ...registered.map(({ name }) => name)])
  const others = choice.chosen.filter((name) => !known.has(name) && !known.has(name.split('/', 1)[0]!))
  return (
    <fieldset className="min-w-0">
      <legend className="mb-1 font-medium">Tools</legend>
      <ErrorBox error={tools.error} retry={() => void tools.refetch()} />
      {tools.isPending && <Skeleton />}
      <ul className="divide-y divide-line rounded-md border border-line">
        {Object.entries(builtinToolDefinitions).map(([name, { description, safety, parameters }]) => (
          <ToolLine
            key={name}
            name={name}
            description={name === 'http_request' ? `${description} ${readingIsSafe}` : description}
            safety={safety}
            origin="Built in"
            {...choice}
          >
            <Schema name={name} schema={parameters} />
          </ToolLine>
        ))}
        {registered.map(({ id, name, description, safety, kind, status }) => (
          <ToolLine
            key={id}
            name={name}
            description={description}
            safety={safety}
            origin={
              status === 'drifted' ? `${toolKindNames[kind]}, has changed since it was registered` : toolKindNames[kind]
            }
            {...choice}
          >
            <Definition project_id={project_id} tool_id={id} name={name} {...choice} />
          </ToolLine>
        ))}
        {others.map((name) => (
          <ToolLine
            key={name}
            name={name}
            description="No tool of this name is registered."
            safety={null}
            {...choice}
          />
        ))}
      </ul>
      {fault !== undefined && <p className="mt-1 text-sm font-medium text-bad">{fault}</p>}
    </fieldset>
  )
}

function ToolLine({
  name,
  description,
  safety,
  origin,
  chosen,
  policies,
  change,
  children,
}: Choice & {
  name: string
  description: string
  safety: Safety
  origin?: string
  children?: React.ReactNode
}) {
  const [isOpen, open] = useState(false)
  const isChosen = chosen.includes(name)
  const isWithin = !isChosen && name.includes('/') && chosen.includes(name.split('/', 1)[0]!)
  const risk = safety === null ? undefined : risks[safety]
  return (
    <li className="px-3 py-1.5">
      <div className="flex flex-wrap items-center gap-x-3 gap-y-1">
        <Checkbox
          label={<code>{name}</code>}
          checked={isChosen || isWithin}
          disabled={isWithin}
          title={isWithin ? 'All tools of this server are selected' : undefined}
          onChange={({ target }) =>
            change({ tools: target.checked ? [...chosen, name] : chosen.filter((one) => one !== name) })
          }
        />
        {risk && (
          <span title={risk[2]}>
            <Badge tone={risk[0]}>{risk[1]}</Badge>
          </span>
        )}
        {origin !== undefined && <span className="text-sm text-soft">{origin}</span>}
        <span className="flex-1" />
        {(isChosen || isWithin) && (
          <FilterSelect
            label={`When it wants to call ${name}`}
            value={policies[name] ?? ''}
            onChange={({ target: { value } }) => {
              const { [name]: _, ...rest } = policies
              change({ tool_policies: value === '' ? rest : { ...rest, [name]: value } })
            }}
          >
            <option value="">{isWithin ? 'as the server' : 'call it (default)'}</option>
            {toolPolicies.map((policy) => (
              <option key={policy} value={policy}>
                {policyWords[policy]}
              </option>
            ))}
          </FilterSelect>
        )}
      </div>
      <p className="text-sm text-soft">
        {/* Descriptions are written for models, which read Markdown: of it, code. */}
        <WithCode text={description} />
      </p>
      {children !== undefined && (
        <details onToggle={({ currentTarget }) => open(currentTarget.open)}>
          <summary className="min-h-6 text-sm text-soft">Arguments</summary>
          {isOpen && children}
        </details>
      )}
    </li>
  )
}

/** The schema of a tool's arguments; of a server or document, its tools. Loaded when it is opened. */
function Definition({
  project_id,
  tool_id,
  name,
  ...choice
}: Choice & { project_id: string; tool_id: string; name: string }) {
  const { data, error, refetch } = useQuery({
    queryKey: ['project', project_id, 'tools', 'one', tool_id],
    queryFn: () => api.tools.get(project_id, tool_id),
  })
  if (!data) return error ? <ErrorBox error={error} retry={() => void refetch()} /> : <Skeleton />
  if (!data.tools) return <Schema name={name} schema={data.parameters ?? {}} />
  return (
    <ul aria-label={`Tools of ${name}`} className="divide-y divide-line border-t border-line">
      {data.tools.map((tool) => (
        <ToolLine key={tool.name} name={tool.name} description={tool.description} safety={tool.safety} {...choice}>
          <Schema name={tool.name} schema={tool.parameters} />
        </ToolLine>
      ))}
    </ul>
  )
}

function Schema({ name, schema }: { name: string; schema: object }) {
  return (
    <pre
      tabIndex={0}
      aria-label={`Arguments of ${name}`}
      className="max-h-60 overflow-auto rounded-md border border-line bg-quiet p-2"
    >
      {JSON.stringify(schema, undefined, 2)}
    </pre>
  )
}
