import { useQuery } from '@tanstack/react-query'
import { Link, useNavigate, useParams } from '@tanstack/react-router'
import { Ellipsis } from 'lucide-react'
import { useState } from 'react'
import { NotFoundError } from '#sdk/errors.ts'
import { LifecycleButtons } from '../../agents/lifecycle-buttons.tsx'
import { agentQuery } from '../../agents/agent-queries.ts'
import { api } from '../../api/client.ts'
import { useDisabledReason } from '../../api/disabled-reason.ts'
import { useProjectId } from '../../api/queries.ts'
import { paths } from '../../paths.ts'
import { useSearchState } from '../../search-state.ts'
import { ButtonLink, IconButton } from '../../ui/button.tsx'
import { CopyId } from '../../ui/copy.tsx'
import { CopyAsCurl, copyCurl, curlOf } from '../../ui/copy-as-curl.tsx'
import { ConfirmDialog } from '../../ui/confirm-dialog.tsx'
import { ErrorBox } from '../../ui/error-box.tsx'
import { Missing } from '../../ui/empty-state.tsx'
import { Menu, MenuItem } from '../../ui/menu.tsx'
import { PageHeader } from '../../ui/page.tsx'
import { Skeleton } from '../../ui/skeleton.tsx'
import { Status } from '../../ui/status.tsx'
import { TabLinks } from '../../ui/tabs.tsx'
import { tell } from '../../ui/toast.tsx'
import { AccessTab } from './access-tab.tsx'
import { ActivityTab } from './activity-tab.tsx'
import { ConfigTab } from './config-tab.tsx'
import { LogsTab } from './logs-tab.tsx'
import { MetricsTab } from './metrics-tab.tsx'
import { Overview } from './overview.tsx'
import { TasksTab } from './tasks-tab.tsx'
import { UseTab } from './use-tab.tsx'
import { WebhooksTab } from './webhooks-tab.tsx'
import { saveFile } from '../../ui/save-file.ts'

const tabs = [
  { id: 'overview', label: 'Overview', Content: Overview },
  { id: 'tasks', label: 'Tasks', Content: TasksTab },
  { id: 'logs', label: 'Logs', Content: LogsTab },
  { id: 'metrics', label: 'Metrics', Content: MetricsTab },
  { id: 'config', label: 'Configuration', Content: ConfigTab },
  { id: 'webhooks', label: 'Webhooks', Content: WebhooksTab },
  { id: 'access', label: 'Access', Content: AccessTab },
  { id: 'activity', label: 'Activity', Content: ActivityTab },
  { id: 'use', label: 'Use as', Content: UseTab },
] as const

/** One agent: its state and what can be done about it, and all that is known of it. */
export default function AgentPage() {
  const project_id = useProjectId()
  const { agent_id = '' } = useParams({ strict: false })
  const [search] = useSearchState<{ tab?: string }>()
  const { data, error, refetch } = useQuery(agentQuery(project_id, agent_id))
  const navigate = useNavigate()
  const [isDeleting, setDeleting] = useState(false)
  const mayNot = useDisabledReason('agents')
  const tab = tabs.find(({ id }) => id === search.tab) ?? tabs[0]
  if (error instanceof NotFoundError && !data)
    return (
      <Missing
        noun="Agent"
        error={error}
        retry={() => void refetch()}
        back={<ButtonLink {...paths.agents(project_id)}>All agents</ButtonLink>}
      />
    )
  if (!data) return error ? <ErrorBox error={error} retry={() => void refetch()} /> : <Skeleton />
  const { agent } = data

  const path = `/api/v1/projects/${project_id}/agents/${agent_id}`
  const keep = (): void => {
    const { name, description, metadata } = agent
    // Files are sent to others, and values of environment variables are mostly secrets.
    const { environment_variables: _, ...config } = agent.config
    const text = JSON.stringify({ name, description, config, metadata }, undefined, 2)
    saveFile(`${name}.json`, 'application/json;charset=utf-8', [text])
  }

  return (
    <>
      <PageHeader
        title={agent.name}
        parent={<Link {...paths.agents(project_id)}>Agents</Link>}
        label={
          <>
            {agent.name} <Status state={agent.status} />
          </>
        }
        actions={
          <>
            <span className="max-sm:hidden">
              <CopyAsCurl path={path} />
            </span>
            <ButtonLink {...paths.editAgent(project_id, agent_id)} reason={mayNot}>
              Edit
            </ButtonLink>
            <Menu
              trigger={
                <IconButton label="More">
                  <Ellipsis size={16} aria-hidden />
                </IconButton>
              }
            >
              <MenuItem
                reason={mayNot}
                onClick={() => void navigate({ ...paths.newAgent(project_id), search: { copy: agent_id } } as never)}
              >
                Duplicate
              </MenuItem>
              <MenuItem onClick={keep}>Export as JSON</MenuItem>
              <MenuItem onClick={() => copyCurl(curlOf('GET', path))}>Copy as curl</MenuItem>
              <MenuItem isDangerous reason={mayNot} onClick={() => setDeleting(true)}>
                Delete
              </MenuItem>
            </Menu>
          </>
        }
      >
        <CopyId id={agent.id} />
        {agent.description !== '' && <p className="mt-1 max-w-3xl">{agent.description}</p>}
      </PageHeader>
      <div className="mb-4">
        <LifecycleButtons project_id={project_id} agent_id={agent_id} status={agent.status} />
      </div>
      <TabLinks
        label="Of this agent"
        current={tab.id}
        tabs={tabs.map(({ id, label }) => ({
          id,
          label,
          link: paths.agent(project_id, agent_id, id === 'overview' ? {} : { tab: id }),
        }))}
      />
      <tab.Content project_id={project_id} agent={agent} />
      <ConfirmDialog
        isOpen={isDeleting}
        close={() => setDeleting(false)}
        title={`Delete ${agent.name}`}
        action="Delete agent"
        typed={agent.name}
        run={async () => {
          await api.agents.delete(project_id, agent_id)
          tell('Agent deleted')
          await navigate(paths.agents(project_id))
        }}
      >
        <p>Its tasks are canceled, and tasks, logs and metrics are removed with it. This cannot be undone.</p>
      </ConfirmDialog>
    </>
  )
}
