import { useQueryClient } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { toolKinds } from '#contract/tools/tools.ts'
import { api } from '../../api/client.ts'
import { useProjectId } from '../../api/queries.ts'
import { paths } from '../../paths.ts'
import { useSearchText } from '../../search-state.ts'
import { PageHeader, ReadOnlyNotice } from '../../ui/page.tsx'
import { tell } from '../../ui/toast.tsx'
import { useDisabledReason } from '../../api/disabled-reason.ts'
import { emptyDraft, weatherDraft } from './tool-draft.ts'
import { ToolForm } from './tool-form.tsx'

/** A new tool, of a kind or by the example that the address names. */
export default function NewTool() {
  const project_id = useProjectId()
  const [search] = useSearchText()
  const queries = useQueryClient()
  const refused = useDisabledReason('agents')
  const kind = toolKinds.find((one) => one === search.kind) ?? 'http'
  return (
    <>
      <PageHeader title="New tool" parent={<Link {...paths.tools(project_id)}>Tools</Link>}>
        Something agents of this project can call.
      </PageHeader>
      <ReadOnlyNotice reason={refused} />
      <ToolForm
        project_id={project_id}
        before={search.example === 'weather' ? weatherDraft : { ...emptyDraft, kind }}
        isNew
        action="Create tool"
        refused={refused}
        request={{ method: 'POST', path: `/api/v1/projects/${project_id}/tools` }}
        save={async (body) => {
          const { id, name } = await api.tools.create(project_id, body)
          await queries.invalidateQueries({ queryKey: ['project', project_id, 'tools'] })
          tell(`${name} is ready. Add it to the tools of an agent`)
          return paths.tool(project_id, id)
        }}
      />
    </>
  )
}
