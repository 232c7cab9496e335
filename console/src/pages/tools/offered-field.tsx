import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import type { NewTool, ToolPreview } from '#sdk/types.ts'
import { api } from '../../api/client.ts'
import { Button } from '../../ui/button.tsx'
import { ErrorBox } from '../../ui/error-box.tsx'
import { Checkbox, SearchInput } from '../../ui/forms/field.tsx'
import { Badge } from '../../ui/status.tsx'
import { safetyTones } from './tool-labels.ts'
import { plural } from '../../format.ts'

type Offered = ToolPreview['tools'][number]

/** Asks a server or a document what it offers, and shows it; of a document operations are chosen. */
export function OfferedField({
  project_id,
  read,
  refused,
  operations,
  onOperations,
  offered,
  onOffered,
}: {
  project_id: string
  /** The definition now; undefined where it cannot be read. */
  read: () => NewTool | undefined
  refused: string | undefined
  operations: readonly string[] | undefined
  onOperations: (operations: readonly string[] | undefined) => void
  offered: readonly Offered[] | undefined
  onOffered: (offered: readonly Offered[]) => void
}) {
  const [search, setSearch] = useState('')
  const look = useMutation({
    mutationFn: async () => {
      const body = read()
      if (!body) return
      const { description: _, name: __, ...definition } = body
      const { operations: ___, ...openapi } = definition.openapi ?? {}
      // All of them are asked for, to choose from.
      const whole = definition.openapi ? { ...definition, openapi } : definition
      onOffered((await api.tools.preview(project_id, whole)).tools)
    },
  })
  const isDocument = offered?.some(({ operation }) => operation !== null) ?? false
  const shown = offered?.filter(({ name, description, operation }) =>
    `${name} ${description} ${operation?.path ?? ''}`.toLowerCase().includes(search.toLowerCase()),
  )
  const usable =
    offered?.flatMap(({ operation, problem }) => (operation && problem === null ? [operation.id] : [])) ?? []
  const chosen = operations ?? usable
  const toggle = (id: string) => {
    const next = chosen.includes(id) ? chosen.filter((one) => one !== id) : [...chosen, id]
    onOperations(next.length === usable.length ? undefined : next)
  }
  return (
    <div className="space-y-2">
      <Button reason={refused} disabled={look.isPending} onClick={() => look.mutate()}>
        {look.isPending ? 'Reading…' : offered ? 'Read again' : 'Load definitions'}
      </Button>
      <ErrorBox error={look.error} title="It could not be read" />
      {offered && (
        <div className="rounded-md border border-line">
          <div className="flex flex-wrap items-center gap-2 border-b border-line px-3 py-2">
            <span className="font-medium" role="status">
              {isDocument ? `${chosen.length} of ${usable.length} operations` : plural(offered.length, 'tool')}
            </span>
            <span className="flex-1" />
            {isDocument && (
              <>
                <Button size="small" onClick={() => onOperations(undefined)}>
                  All
                </Button>
                <Button size="small" onClick={() => onOperations([])}>
                  None
                </Button>
              </>
            )}
            <SearchInput
              label="Filter by name"
              value={search}
              onChange={({ target }) => setSearch(target.value)}
              className="!w-44"
            />
          </div>
          <ul
            aria-label={isDocument ? 'Operations' : 'Tools of the server'}
            tabIndex={0}
            className="max-h-96 divide-y divide-line overflow-y-auto"
          >
            {shown?.map((tool) => (
              <li key={tool.operation?.id ?? tool.name} className="px-3 py-1.5">
                <div className="flex flex-wrap items-center gap-x-2">
                  {tool.operation ? (
                    <Checkbox
                      label={<code className="break-all">{tool.name}</code>}
                      checked={tool.problem === null && chosen.includes(tool.operation.id)}
                      disabled={tool.problem !== null}
                      onChange={() => toggle(tool.operation!.id)}
                    />
                  ) : (
                    <code className="break-all">{tool.name}</code>
                  )}
                  {tool.problem === null && <Badge tone={safetyTones[tool.safety]}>{tool.safety}</Badge>}
                  {tool.operation && (
                    <code className="text-sm break-all text-soft">
                      {tool.operation.method} {tool.operation.path}
                    </code>
                  )}
                </div>
                {tool.description !== '' && <p className="line-clamp-2 text-sm text-soft">{tool.description}</p>}
                {tool.problem !== null && <p className="text-sm text-warn">Cannot be used: {tool.problem}.</p>}
              </li>
            ))}
            {shown?.length === 0 && <li className="px-3 py-2 text-soft">No matches.</li>}
          </ul>
        </div>
      )}
    </div>
  )
}
