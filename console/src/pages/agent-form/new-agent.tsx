import { useQuery, useQueryClient } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import { agentQuery } from '../../agents/agent-queries.ts'
import { textsOf } from '../../agents/snippets.tsx'
import { api } from '../../api/client.ts'
import { useDisabledReason } from '../../api/disabled-reason.ts'
import { useProjectId } from '../../api/queries.ts'
import { paths } from '../../paths.ts'
import { useSearchState } from '../../search-state.ts'
import { ErrorBox } from '../../ui/error-box.tsx'
import { PageHeader, ReadOnlyNotice } from '../../ui/page.tsx'
import { Skeleton } from '../../ui/skeleton.tsx'
import { tell } from '../../ui/toast.tsx'
import { AgentForm } from './agent-form.tsx'
import { bodyOfNew, draftOf, emptyDraft, withoutSecrets, type Draft } from './draft.ts'
import { ImportAgent } from './import-agent.tsx'

/** A new agent: from nothing, from one that is there, or from a file that one was exported to. */
export default function NewAgentPage() {
  const project_id = useProjectId()
  const [imported, setImported] = useState<Draft>()
  const [search] = useSearchState<{ copy?: string }>()
  const queries = useQueryClient()
  const refused = useDisabledReason('agents')
  const copied = useQuery({ ...agentQuery(project_id, search.copy ?? ''), enabled: search.copy !== undefined })
  if (copied.error) return <ErrorBox error={copied.error} retry={() => void copied.refetch()} />
  if (search.copy !== undefined && !copied.data) return <Skeleton />
  const agent = copied.data?.agent
  const before = imported ?? (agent ? { ...draftOf(agent), name: `${agent.name} copy` } : emptyDraft)
  const path = `/api/v1/projects/${project_id}/agents`
  const create = async (draft: Draft): Promise<string> => {
    // What the form holds is what the API takes; what is wrong with it the API says, at its field.
    const { id } = await api.agents.create(project_id, bodyOfNew(draft))
    await queries.invalidateQueries({ queryKey: ['project', project_id, 'agents'] })
    tell('Agent created')
    return id
  }
  return (
    <>
      <PageHeader
        parent={<Link {...paths.agents(project_id)}>Agents</Link>}
        title={agent ? `Duplicate ${agent.name}` : 'New agent'}
        actions={agent ? undefined : <ImportAgent onRead={setImported} />}
      >
        {agent || imported ? 'Environment variables are not copied: their values are mostly secrets.' : undefined}
      </PageHeader>
      <ReadOnlyNotice reason={refused} />
      <AgentForm
        // A form that was read from a file begins anew.
        key={imported ? JSON.stringify(imported) : (search.copy ?? '')}
        project_id={project_id}
        before={before}
        action="Create agent"
        textsOf={(draft) => {
          const body = withoutSecrets(bodyOfNew(draft))
          return textsOf({
            method: 'POST',
            path,
            body,
            sdk: `const agent = await cadre.agents.create('${project_id}', ${JSON.stringify(body, undefined, 2)})`,
          })
        }}
        save={async (draft) => paths.agent(project_id, await create(draft))}
        saveAndTry={async (draft) => paths.editAgent(project_id, await create(draft))}
      />
    </>
  )
}
