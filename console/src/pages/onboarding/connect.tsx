import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { Download } from 'lucide-react'
import { agentQuery } from '../../agents/agent-queries.ts'
import { useNewestAgents } from '../../agents/agent-names.ts'
import { AgentField } from '../../agents/agent-picker.tsx'
import { serviceUrl } from '../../agents/snippets.tsx'
import { api, basePath } from '../../api/client.ts'
import { statusQuery, useProjectId } from '../../api/queries.ts'
import { paths } from '../../paths.ts'
import { useSearchText } from '../../search-state.ts'
import { Button, ButtonLink } from '../../ui/button.tsx'
import { CodeBlock, CopyButton } from '../../ui/copy.tsx'
import { ErrorBox } from '../../ui/error-box.tsx'
import { Facts, Panel } from '../../ui/page.tsx'
import { saveFile } from '../../ui/save-file.ts'
import { Skeleton } from '../../ui/skeleton.tsx'
import { tellFailure } from '../../ui/toast.tsx'
import { OtherClients } from '../agent/other-clients.tsx'
import { PageFrame } from '../parts/page-frame.tsx'
import { brunoCollection } from './bruno.ts'
import { TryCall } from './try-call.tsx'

/** How programs reach the service: its addresses, its description, its libraries, and clients of other protocols. */
export default function ConnectPage() {
  const project_id = useProjectId()
  const docs = useQuery({ queryKey: ['docs'], queryFn: () => api.service.docs(), staleTime: Infinity })
  const url = serviceUrl()
  return (
    <PageFrame
      title="Connect"
      lead="Call the API, install the SDK and the command line, and use agents from clients you already have."
      path="/api/v1/docs"
    >
      <ErrorBox error={docs.error} retry={() => void docs.refetch()} />
      <div className="grid grid-cols-1 items-start gap-4 xl:grid-cols-2">
        <div className="min-w-0 space-y-4">
          <Panel
            title="API"
            actions={
              <a href={`${basePath}docs`} target="_blank" rel="noreferrer">
                API reference
              </a>
            }
          >
            <div className="space-y-4 p-4">
              <Facts>
                <dt>Base URL</dt>
                <dd>
                  <Address text={url} />
                </dd>
                <dt>OpenAPI</dt>
                <dd>
                  <Address text={`${url}/api/v1/docs`} />
                </dd>
                <dt>Project</dt>
                <dd>
                  <Address text={project_id} />
                </dd>
                <dt>Credential</dt>
                <dd>
                  An API key in the header <code>X-API-Key</code>.{' '}
                  <Link {...paths.keys({ panel: 'new' })}>Create a key</Link>
                </dd>
              </Facts>
              <p className="flex flex-wrap gap-2">
                <Downloads document={docs.data} url={url} />
              </p>
            </div>
          </Panel>
          <TryCall project_id={project_id} document={docs.data} />
        </div>
        <div className="min-w-0 space-y-4">
          <Install url={url} />
          <Clients project_id={project_id} />
        </div>
      </div>
    </PageFrame>
  )
}

function Address({ text }: { text: string }) {
  return (
    <span className="inline-flex max-w-full items-center gap-0.5">
      <code className="truncate" title={text}>
        {text}
      </code>
      <CopyButton text={text} label={`Copy ${text}`} />
    </span>
  )
}

/** The description of the API, and the same as a collection of requests. */
function Downloads({ document, url }: { document: object | undefined; url: string }) {
  const reason = document === undefined ? 'The description of the API is being loaded' : undefined
  const save = (name: string, content: object): void =>
    saveFile(name, 'application/json', [JSON.stringify(content, undefined, 2)])
  return (
    <>
      <Button reason={reason} onClick={() => save('cadre-openapi.json', document!)}>
        <Download size={14} aria-hidden /> OpenAPI
      </Button>
      <Button
        reason={reason}
        onClick={() => {
          try {
            save('cadre-bruno.json', brunoCollection(document!, url))
          } catch (error) {
            tellFailure('The collection was not made', error)
          }
        }}
      >
        <Download size={14} aria-hidden /> Bruno collection
      </Button>
    </>
  )
}

function Install({ url }: { url: string }) {
  const { data } = useQuery(statusQuery)
  const version = data?.version ?? '0.1.0'
  return (
    <Panel title="SDK and command line">
      <div className="space-y-3 p-4">
        <p className="text-soft">
          Each release includes these files. The SDKs and the command line read the key from CADRE_API_KEY.
        </p>
        <Choice name="TypeScript" text={`npm install ./cadre-sdk-${version}.tgz`} />
        <Choice name="Python" text={`pip install ./cadre_sdk-${version}-py3-none-any.whl`} />
        <Choice
          name="Command line"
          text={`npm install --global ./cadre-cli-${version}.tgz\nprintf %s "$CADRE_API_KEY" | cadre login --with-key --base-url ${url}`}
        />
      </div>
    </Panel>
  )
}

function Choice({ name, text }: { name: string; text: string }) {
  return (
    <div>
      <p className="mb-1 font-medium">{name}</p>
      <CodeBlock text={text} label={`Copy the commands for ${name}`} />
    </div>
  )
}

/** Clients of other protocols, for one agent: each has separate addresses. */
function Clients({ project_id }: { project_id: string }) {
  const [params, setParams] = useSearchText()
  const newest = useNewestAgents(project_id)
  const agent_id = params.agent ?? newest.data?.[0]?.id
  const agent = useQuery({ ...agentQuery(project_id, agent_id ?? ''), enabled: agent_id !== undefined })
  if (newest.data?.length === 0)
    return (
      <Panel title="From clients you already have">
        <div className="space-y-3 p-4">
          <p className="text-soft">
            An agent is a model for OpenAI clients, a tool for MCP clients, and an agent for A2A clients.
          </p>
          <ButtonLink {...paths.newAgent(project_id)}>Create an agent</ButtonLink>
        </div>
      </Panel>
    )
  return (
    <>
      <AgentField project_id={project_id} value={agent_id} onChange={(next) => setParams({ agent: next })} />
      <ErrorBox error={newest.error ?? agent.error} />
      {agent.data ? (
        <OtherClients project_id={project_id} agent={agent.data.agent} />
      ) : (
        !agent.error && <Skeleton rows={6} />
      )}
    </>
  )
}
