import { curlOf } from '../../ui/copy-as-curl.tsx'
import { CodeBlock } from '../../ui/copy.tsx'

/** The one command that makes an agent. */
export function AgentSnippets({ project_id }: { project_id: string }) {
  const text = curlOf('POST', `/api/v1/projects/${project_id}/agents`, {
    body: { name: 'echo', config: { model: 'builtin/echo' } },
  })
  return (
    <div className="text-left">
      <CodeBlock text={text} label="Copy the command that makes an agent" />
    </div>
  )
}
