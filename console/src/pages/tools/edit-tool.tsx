import { useQuery, useQueryClient } from '@tanstack/react-query'
import { Link, useParams } from '@tanstack/react-router'
import type { NewTool } from '#sdk/types.ts'
import { api } from '../../api/client.ts'
import { useProjectId } from '../../api/queries.ts'
import { paths } from '../../paths.ts'
import { ErrorBox } from '../../ui/error-box.tsx'
import { PageHeader, ReadOnlyNotice } from '../../ui/page.tsx'
import { Skeleton } from '../../ui/skeleton.tsx'
import { tell } from '../../ui/toast.tsx'
import { useDisabledReason } from '../../api/disabled-reason.ts'
import { draftOf, readDraft } from './tool-draft.ts'
import { ToolForm } from './tool-form.tsx'

/** A tool that is there, to be changed. */
export default function EditTool() {
  const project_id = useProjectId()
  const { tool_id: id = '' } = useParams({ strict: false })
  const queries = useQueryClient()
  const refused = useDisabledReason('agents')
  const { data, error, refetch } = useQuery({
    queryKey: ['project', project_id, 'tools', 'one', id],
    queryFn: () => api.tools.get(project_id, id),
  })
  if (!data)
    return error ? <ErrorBox error={error} retry={() => void refetch()} /> : <Skeleton label="Loading the tool" />
  const before = draftOf(data)
  return (
    <>
      <PageHeader title={`Edit ${data.name}`} parent={<Link {...paths.tool(project_id, id)}>{data.name}</Link>} />
      <ReadOnlyNotice reason={refused} />
      <ToolForm
        // What another one changed meanwhile is not mixed in.
        key={id}
        project_id={project_id}
        before={before}
        isNew={false}
        action="Save"
        refused={refused}
        request={{ method: 'PUT', path: `/api/v1/projects/${project_id}/tools/${id}` }}
        save={async (body) => {
          await api.tools.update(project_id, id, changes(readDraft(before), body))
          await queries.invalidateQueries({ queryKey: ['project', project_id, 'tools'] })
          tell('Saved')
          return paths.tool(project_id, id)
        }}
      />
    </>
  )
}

/** Without a definition that stays: given again, it would be read and approved again. */
function changes(before: ReturnType<typeof readDraft>, body: NewTool): Partial<NewTool> {
  const { kind, ...rest } = body
  const old = 'body' in before && kind !== 'client' ? before.body[kind] : undefined
  if (kind === 'client' || JSON.stringify(old) !== JSON.stringify(body[kind])) return rest
  const { [kind]: _, ...others } = rest
  return others
}
