import { useQuery, useQueryClient } from '@tanstack/react-query'
import { Link, useParams } from '@tanstack/react-router'
import { useState } from 'react'
import type { AgentChange } from '#sdk/types.ts'
import { agentQuery } from '../../agents/agent-queries.ts'
import { textsOf } from '../../agents/snippets.tsx'
import { api } from '../../api/client.ts'
import { useDisabledReason } from '../../api/disabled-reason.ts'
import { useProjectId } from '../../api/queries.ts'
import { paths } from '../../paths.ts'
import { ErrorBox } from '../../ui/error-box.tsx'
import { PageHeader, ReadOnlyNotice } from '../../ui/page.tsx'
import { Skeleton } from '../../ui/skeleton.tsx'
import { tell } from '../../ui/toast.tsx'
import { AgentForm } from './agent-form.tsx'
import { bodyOfChange, draftOf, withoutSecrets, type Draft } from './draft.ts'

/** Changes an agent. Who changed it meanwhile is not written over: the revision that was read is named. */
export default function EditAgentPage() {
  const project_id = useProjectId()
  const { agent_id = '' } = useParams({ strict: false })
  const { data, error, refetch } = useQuery(agentQuery(project_id, agent_id))
  if (!data) return error ? <ErrorBox error={error} retry={() => void refetch()} /> : <Skeleton />
  return <EditAgent project_id={project_id} read={data} />
}

function EditAgent({
  project_id,
  read,
}: {
  project_id: string
  read: { agent: Parameters<typeof draftOf>[0] & { id: string }; etag: string | undefined }
}) {
  // As it was when the form was opened: what comes over the stream later does not change what is compared with.
  const [{ agent, etag }, setRead] = useState(read)
  const queries = useQueryClient()
  const refused = useDisabledReason('agents')
  const before = draftOf(agent)
  const { environment_variables } = agent.config as { environment_variables?: object }
  const update = async (draft: Draft) => {
    const body = bodyOfChange(before, draft) as AgentChange
    const saved = await api.agents.update(project_id, agent.id, body, { ifMatch: etag }).withResponse()
    void queries.invalidateQueries({ queryKey: ['project', project_id, 'agents'] })
    return saved
  }
  return (
    <>
      <PageHeader
        title={`Edit ${agent.name}`}
        parent={<Link {...paths.agent(project_id, agent.id)}>{agent.name}</Link>}
      />
      <ReadOnlyNotice reason={refused} />
      <AgentForm
        project_id={project_id}
        before={before}
        environmentNames={Object.keys(environment_variables ?? {})}
        action="Save"
        textsOf={(draft) => {
          const body = withoutSecrets(bodyOfChange(before, draft))
          return textsOf({
            method: 'PUT',
            path: `/api/v1/projects/${project_id}/agents/${agent.id}`,
            body,
            sdk: `await cadre.agents.update('${project_id}', '${agent.id}', ${JSON.stringify(body, undefined, 2)})`,
          })
        }}
        saved={{
          agent_id: agent.id,
          keep: async (draft) => {
            const { data, etag } = await update(draft)
            setRead({ agent: data, etag: etag ?? undefined })
            tell('Agent changed')
          },
          readAgain: async () => {
            const fresh = await queries.fetchQuery({ ...agentQuery(project_id, agent.id), staleTime: 0 })
            setRead(fresh)
            return draftOf(fresh.agent)
          },
        }}
        save={async (draft) => {
          await update(draft)
          tell('Agent changed')
          return paths.agent(project_id, agent.id)
        }}
      />
    </>
  )
}
