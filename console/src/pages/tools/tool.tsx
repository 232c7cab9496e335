import { toolKindNames } from '#contract/tools/tools.ts'
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { Link, useNavigate, useParams } from '@tanstack/react-router'
import type { NewTool, Tool, ToolStatistics } from '#sdk/types.ts'
import { api } from '../../api/client.ts'
import { useProjectId } from '../../api/queries.ts'
import { formatCount, formatDuration, plural } from '../../format.ts'
import { paths } from '../../paths.ts'
import { useSearchText } from '../../search-state.ts'
import { Button, ButtonLink } from '../../ui/button.tsx'
import { CodeBlock, CopyId } from '../../ui/copy.tsx'
import { ConfirmDialog } from '../../ui/confirm-dialog.tsx'
import { ErrorBox } from '../../ui/error-box.tsx'
import { Facts, Panel } from '../../ui/page.tsx'
import { Skeleton } from '../../ui/skeleton.tsx'
import { Badge, Status } from '../../ui/status.tsx'
import { Time } from '../../ui/time.tsx'
import { tell } from '../../ui/toast.tsx'
import { PageFrame } from '../parts/page-frame.tsx'
import { useDisabledReason } from '../../api/disabled-reason.ts'
import { DriftPanel } from './drift-panel.tsx'
import { draftOf, readDraft } from './tool-draft.ts'
import { ClientLead } from './tool-form.tsx'
import { safetyTones, safetyWords } from './tool-labels.ts'
import { useToolStatistics } from './tools.tsx'
import { TryPanel } from './try-panel.tsx'

/** One tool: what it does, who uses it, how it does, and a real call. */
export default function ToolPage() {
  const project_id = useProjectId()
  const { tool_id: id = '' } = useParams({ strict: false })
  const [params, setParams] = useSearchText()
  const navigate = useNavigate()
  const queries = useQueryClient()
  const { data, error, isPending, refetch } = useQuery({
    queryKey: ['project', project_id, 'tools', 'one', id],
    queryFn: () => api.tools.get(project_id, id),
    refetchInterval: 15_000,
  })
  const statistics = useToolStatistics(project_id, [id])
  const use = statistics.data?.get(id)
  const refused = useDisabledReason('agents')
  const mayNot = refused ?? (data ? undefined : 'The tool is not shown yet')
  const remove = async () => {
    await api.tools.delete(project_id, id)
    tell('The tool is deleted')
    await navigate(paths.tools(project_id))
    await queries.invalidateQueries({
      queryKey: ['project', project_id, 'tools'],
      predicate: ({ queryKey }) => !queryKey.includes(id),
    })
  }
  const read = data && readDraft(draftOf(data))
  const definition: NewTool | undefined = read && 'body' in read ? read.body : undefined
  return (
    <PageFrame
      title={data?.name ?? 'Tool'}
      parent={<Link {...paths.tools(project_id)}>Tools</Link>}
      lead={data?.description}
      path={`/api/v1/projects/${project_id}/tools/${id}`}
      missing={{ noun: 'Tool', error, retry: refetch }}
      actions={
        <>
          {mayNot === undefined ? (
            <ButtonLink {...paths.editTool(project_id, id)}>Edit</ButtonLink>
          ) : (
            <Button reason={mayNot}>Edit</Button>
          )}
          <Button kind="danger" reason={mayNot} onClick={() => setParams({ panel: 'delete' })}>
            Delete
          </Button>
        </>
      }
    >
      {isPending && <Skeleton label="Loading the tool" />}
      <ErrorBox error={error} retry={() => void refetch()} />
      {data && (
        <>
          {data.status === 'drifted' && data.drift !== null && (
            <DriftPanel project_id={project_id} tool={data} refused={refused} />
          )}
          <div className="grid grid-cols-[minmax(0,1fr)] items-start gap-5 xl:grid-cols-[minmax(0,1fr)_minmax(0,28rem)]">
            <div className="min-w-0 space-y-5">
              <Panel className="p-4">
                <ToolFacts project_id={project_id} tool={data} use={use} />
              </Panel>
              <Arguments tool={data} />
            </div>
            <Panel title={data.kind === 'client' ? 'How it is called' : 'Try it'}>
              <div className="p-4">
                {data.kind === 'client' ? (
                  <>
                    <ClientLead name={data.name} />
                    <p className="mt-3">
                      <Link {...paths.toolCalls(project_id)}>Calls that wait for a process</Link>
                    </p>
                  </>
                ) : (
                  <TryPanel
                    project_id={project_id}
                    definition={definition}
                    choices={data.tools?.map(({ name, ...tool }) => ({
                      ...tool,
                      name: name.slice(data.name.length + 1),
                    }))}
                    refused={mayNot}
                  />
                )}
              </div>
            </Panel>
          </div>
        </>
      )}
      <ConfirmDialog
        title="Delete the tool"
        action="Delete tool"
        isOpen={params.panel === 'delete'}
        close={() => setParams({ panel: undefined })}
        refused={refused}
        run={remove}
        typed={data?.name}
      >
        <p>
          {use && use.agents_total > 0
            ? `${plural(use.agents_total, 'agent has', 'agents have')} it, and will continue without it, with a warning in the log.`
            : 'No agent has it.'}
        </p>
      </ConfirmDialog>
    </PageFrame>
  )
}

function ToolFacts({ project_id, tool, use }: { project_id: string; tool: Tool; use: ToolStatistics | undefined }) {
  const { id, kind, http, openapi, mcp, safety, status, timeout_seconds } = tool
  const { headers = {} } = http ?? openapi ?? mcp ?? {}
  const timeout_s = http?.timeout_seconds ?? timeout_seconds
  const url = http?.url ?? openapi?.url ?? mcp?.url
  return (
    <Facts>
      <dt>Kind</dt>
      <dd>{toolKindNames[kind]}</dd>
      <dt>State</dt>
      <dd>
        <Status state={status} label={status === 'drifted' ? 'changed' : status} />
      </dd>
      {safety !== null && (
        <>
          <dt>Safety</dt>
          <dd>
            <Badge tone={safetyTones[safety]}>{safety}</Badge> <span className="text-soft">{safetyWords[safety]}</span>
          </dd>
        </>
      )}
      {url !== undefined && (
        <>
          <dt>{kind === 'openapi' ? 'Document' : 'Address'}</dt>
          <dd>
            <code className="break-all">
              {http ? `${http.method} ` : ''}
              {url}
            </code>
          </dd>
        </>
      )}
      {openapi?.base_url !== undefined && (
        <>
          <dt>API</dt>
          <dd>
            <code className="break-all">{openapi.base_url}</code>
          </dd>
        </>
      )}
      {Object.keys(headers).length > 0 && (
        <>
          <dt>Headers</dt>
          <dd>
            {Object.entries(headers).map(([name, value]) => (
              <code key={name} className="block break-all">
                {name}: {hidden(value)}
              </code>
            ))}
          </dd>
        </>
      )}
      {timeout_s !== undefined && (
        <>
          <dt>Timeout</dt>
          <dd>{formatDuration(timeout_s * 1000)}</dd>
        </>
      )}
      <dt>Agents</dt>
      <dd>
        {use === undefined ? (
          '…'
        ) : use.agents_total === 0 ? (
          <span className="text-soft">
            None. <Link {...paths.agents(project_id)}>Add it to the tools of an agent</Link> to let the agent call it.
          </span>
        ) : (
          <span className="flex flex-wrap gap-x-3">
            {use.agents.map((agent) => (
              <Link key={agent.id} {...paths.agent(project_id, agent.id)}>
                {agent.name}
              </Link>
            ))}
            {use.agents_total > use.agents.length && (
              <span className="text-soft">and {formatCount(use.agents_total - use.agents.length)} more</span>
            )}
          </span>
        )}
      </dd>
      <dt>Last 24 hours</dt>
      <dd>
        {use === undefined ? '…' : `${plural(use.calls, 'call')}, ${formatCount(use.failures)} failed`}
        {use?.last_used_at !== undefined && use.last_used_at !== null && (
          <span className="text-soft">
            ; last used <Time at={use.last_used_at} />
          </span>
        )}
      </dd>
      {use?.last_failure && (
        <>
          <dt>Last failure</dt>
          <dd>
            <span className="text-bad">{use.last_failure.message}</span> <Time at={use.last_failure.at} />,{' '}
            <Link {...paths.task(project_id, use.last_failure.task_id)} className="underline">
              open the task
            </Link>
          </dd>
        </>
      )}
      <dt>Changed</dt>
      <dd>
        <Time at={tool.updated_at} />
      </dd>
      <dt>ID</dt>
      <dd>
        <CopyId id={id} />
      </dd>
    </Facts>
  )
}

/** A header's value; one without a placeholder may be a secret itself. */
function hidden(value: string): string {
  return value.includes('${') ? value : '••••••••'
}

/** What a tool takes; of a server or a document, its tools. */
function Arguments({ tool }: { tool: Tool }) {
  if (!tool.tools)
    return (
      <Panel title="Arguments">
        <div className="p-4">
          {tool.parameters === null ? (
            <p className="text-soft">No arguments.</p>
          ) : (
            <CodeBlock text={JSON.stringify(tool.parameters, undefined, 2)} label="Copy the schema" />
          )}
        </div>
      </Panel>
    )
  return (
    <Panel title={plural(tool.tools.length, 'tool')}>
      <ul className="divide-y divide-line">
        {tool.tools.map(({ name, description, safety, parameters }) => (
          <li key={name} data-row={name} className="px-4 py-2">
            <details>
              <summary data-open className="min-h-6 cursor-pointer">
                <code className="break-all">{name}</code> <Badge tone={safetyTones[safety]}>{safety}</Badge>
                <span className="mt-0.5 block text-sm text-soft">{description}</span>
              </summary>
              <div className="mt-2">
                <CodeBlock text={JSON.stringify(parameters, undefined, 2)} label={`Copy the schema of ${name}`} />
              </div>
            </details>
          </li>
        ))}
      </ul>
    </Panel>
  )
}
