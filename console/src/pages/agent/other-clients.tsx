import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { doorNames, doors } from '#contract/core/doors.ts'
import { connectionsOf, doorSetting, isPublishedTo, publishing } from '#contract/doors/connections.ts'
import { serviceUrl } from '../../agents/snippets.tsx'
import { projectQuery } from '../../api/queries.ts'
import { paths } from '../../paths.ts'
import { useSearchState } from '../../search-state.ts'
import { Choices } from '../../ui/forms/choices.tsx'
import { CodeBlock, CopyButton } from '../../ui/copy.tsx'
import { Panel } from '../../ui/page.tsx'
import type { TabProps } from './tab.ts'

/** How clients of other protocols use the agent, with its own addresses and names. */
export function OtherClients({ project_id, agent }: TabProps) {
  const { data: project } = useQuery(projectQuery(project_id))
  const [search, change] = useSearchState<{ as?: string | undefined; client?: string | undefined }>()
  const protocol = doorNames.find((one) => one === search.as) ?? 'openai'
  if (!project) return null
  const { url, connections } = connectionsOf(protocol, {
    ...{ base_url: serviceUrl(), agent_id: agent.id, agent: agent.name, project: project.name },
  })
  const shown = connections.find(({ client }) => client === search.client) ?? connections[0]!
  const isPublished = isPublishedTo(agent.config, protocol)
  const setting = doorSetting(protocol)
  return (
    <Panel title="From clients you already have">
      <div className="space-y-3 p-4">
        <Choices
          label="Protocol"
          value={protocol}
          options={doorNames.map((one) => [one, doors[one].title] as const)}
          onChange={(as) => change({ as: as === 'openai' ? undefined : as, client: undefined }, { replace: true })}
        />
        <p className="max-w-3xl text-soft">{doors[protocol].lead}</p>
        {!isPublished && (
          <p role="note" className="max-w-3xl">
            The agent is not published to this protocol. <Link {...paths.editAgent(project_id, agent.id)}>Edit it</Link>{' '}
            and add <code className="break-all">{JSON.stringify(publishing(protocol)).slice(1, -1)}</code> to its
            configuration.
          </p>
        )}
        {setting && (
          <p className="max-w-3xl text-soft">
            The service has to serve it: <code>{setting}</code>.
          </p>
        )}
        <p className="flex min-w-0 items-center gap-1">
          <span className="shrink-0 text-soft">Address</span>
          <code className="truncate" title={url}>
            {url}
          </code>
          <CopyButton text={url} label="Copy the address" />
        </p>
        <div className="max-w-full overflow-x-auto">
          <Choices
            label="Client"
            value={shown.client}
            options={connections.map(({ client }) => [client, client] as const)}
            onChange={(client) => change({ client }, { replace: true })}
          />
        </div>
        <CodeBlock text={shown.text} label={`Copy for ${shown.client}`} />
        {protocol === 'mcp' && <McpInstalls url={url} />}
      </div>
    </Panel>
  )
}

/** Links that a client opens to add the server: the key is asked for there. */
function McpInstalls({ url }: { url: string }) {
  const code = {
    name: 'cadre',
    type: 'http',
    url,
    headers: { Authorization: 'Bearer ${input:cadre}' },
    inputs: [{ id: 'cadre', type: 'promptString', description: 'Cadre API key', password: true }],
  }
  const cursor = { url, headers: { Authorization: 'Bearer ${env:CADRE_API_KEY}' } }
  return (
    <p className="flex flex-wrap gap-x-4 gap-y-1">
      <a href={`vscode:mcp/install?${encodeURIComponent(JSON.stringify(code))}`}>Add to VS Code</a>
      <a
        href={`cursor://anysphere.cursor-deeplink/mcp/install?${new URLSearchParams({ name: 'cadre', config: btoa(JSON.stringify(cursor)) })}`}
      >
        Add to Cursor
      </a>
    </p>
  )
}
