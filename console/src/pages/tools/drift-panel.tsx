import { useMutation, useQueryClient } from '@tanstack/react-query'
import type { Tool } from '#sdk/types.ts'
import { DiffTable } from '../../agents/diff-table.tsx'
import { api } from '../../api/client.ts'
import { Button } from '../../ui/button.tsx'
import { ErrorBox } from '../../ui/error-box.tsx'
import { Badge } from '../../ui/status.tsx'
import { tell } from '../../ui/toast.tsx'

/** What a server says now that differs from what was approved. */
interface Drift {
  changed?: string[]
  added?: string[]
  removed?: string[]
  definitions?: { name: string; description: string; parameters: Record<string, unknown> }[]
  fingerprint?: string
}

/** How the definitions of a server changed since they were approved, as a diff to approve. */
export function DriftPanel({
  project_id,
  tool,
  refused,
}: {
  project_id: string
  tool: Tool
  refused: string | undefined
}) {
  const queries = useQueryClient()
  const { changed = [], added = [], removed = [], definitions = [], fingerprint } = tool.drift as Drift
  const approve = useMutation({
    mutationFn: () => api.tools.approve(project_id, tool.id, fingerprint === undefined ? {} : { fingerprint }),
    onSuccess: () => tell('The definitions are approved'),
    onSettled: () => queries.invalidateQueries({ queryKey: ['project', project_id] }),
  })
  const before = new Map(tool.tools?.map(({ name, ...one }) => [name.slice(tool.name.length + 1), one]))
  const after = new Map(definitions.map((one) => [one.name, one]))
  return (
    <section aria-labelledby="drift" className="mb-5 rounded-lg border border-warn bg-panel">
      <div className="flex flex-wrap items-center justify-between gap-2 border-b border-line bg-warn-soft px-4 py-2 text-warn">
        <div className="min-w-0">
          <h2 id="drift" className="!text-base">
            The server changed its tools
          </h2>
          <p className="text-sm">Agents cannot call the changed and new ones until you approve them.</p>
        </div>
        <Button kind="primary" reason={refused} disabled={approve.isPending} onClick={() => approve.mutate()}>
          Approve changes
        </Button>
      </div>
      <div className="space-y-4 p-4">
        <ErrorBox error={approve.error} />
        {changed.map((name) => (
          <div key={name}>
            <h3 className="mb-1 flex items-center gap-2">
              <code>{name}</code> <Badge tone="warn">changed</Badge>
            </h3>
            {after.has(name) ? (
              <DiffTable
                label={`What changed in ${name}`}
                before={wordsOf(before.get(name))}
                after={wordsOf(after.get(name))}
              />
            ) : (
              <p className="text-soft">The new definition is too long to be shown here.</p>
            )}
          </div>
        ))}
        {added.map((name) => (
          <div key={name}>
            <h3 className="mb-1 flex items-center gap-2">
              <code>{name}</code> <Badge tone="good">new</Badge>
            </h3>
            <p className="text-soft">
              {after.get(name)?.description ?? 'Its definition is too long to be shown here.'}
            </p>
          </div>
        ))}
        {removed.map((name) => (
          <h3 key={name} className="flex items-center gap-2">
            <code>{name}</code> <Badge tone="bad">removed</Badge>
          </h3>
        ))}
      </div>
    </section>
  )
}

function wordsOf(definition: { description: string; parameters: Record<string, unknown> } | undefined) {
  return definition && { description: definition.description, parameters: definition.parameters }
}
