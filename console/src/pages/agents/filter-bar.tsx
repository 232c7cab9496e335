import { Columns3 } from 'lucide-react'
import { agentStates } from '#contract/resources/agent-lifecycle.ts'
import { Button } from '../../ui/button.tsx'
import { Checkbox, FilterSelect } from '../../ui/forms/field.tsx'
import { TypedSearch } from '../../ui/forms/typed-search.tsx'

/** Which agents are listed; as it is in the address. */
export type AgentFilters = {
  text?: string | number | undefined
  status?: string | undefined
  model?: string | number | undefined
  tag?: string | number | undefined
}

/** What narrows the list, and which columns it has. */
export function FilterBar({
  filters,
  change,
  models,
  tags,
  columns,
  hidden,
  showColumns,
}: {
  filters: AgentFilters
  change: (filters: AgentFilters, options?: { replace?: boolean }) => void
  /** What is offered to choose from. */
  models: readonly string[]
  tags: readonly string[]
  columns: readonly { id: string; header: string }[]
  hidden: ReadonlySet<string>
  showColumns: (hidden: readonly string[]) => void
}) {
  const isNarrowed = Object.values(filters).some((value) => value !== undefined)
  return (
    <div
      role="search"
      aria-label="Agents"
      className="mb-3 flex flex-wrap items-center gap-2 max-sm:grid max-sm:grid-cols-3 max-sm:[&>:first-child]:col-span-3"
    >
      <TypedSearch
        label="Name or description"
        value={String(filters.text ?? '')}
        commit={(text) => change({ text: text || undefined }, { replace: true })}
      />
      <FilterSelect
        label="State"
        value={filters.status ?? ''}
        onChange={(event) => change({ status: event.target.value || undefined })}
      >
        <option value="">Any state</option>
        {agentStates.map((state) => (
          <option key={state} value={state}>
            {state}
          </option>
        ))}
      </FilterSelect>
      <TypedSearch
        label="Model"
        className="sm:!w-44"
        value={String(filters.model ?? '')}
        choices={models}
        commit={(model) => change({ model: model || undefined }, { replace: true })}
      />
      <TypedSearch
        label="Tag"
        className="sm:!w-32"
        value={String(filters.tag ?? '')}
        choices={tags}
        commit={(tag) => change({ tag: tag || undefined }, { replace: true })}
      />
      {isNarrowed && (
        <Button
          kind="ghost"
          onClick={() => change({ text: undefined, status: undefined, model: undefined, tag: undefined })}
        >
          Show all
        </Button>
      )}
      <details className="relative max-sm:hidden">
        <summary className="inline-flex min-h-8 list-none items-center gap-1.5 rounded-md border border-edge bg-panel px-2.5 max-sm:min-h-10 hover:border-edge max-sm:min-h-10">
          <Columns3 size={14} aria-hidden /> Columns
        </summary>
        <div className="absolute z-20 mt-1 w-48 space-y-1 rounded-md border border-line bg-raised p-3 shadow-lg">
          {columns
            .filter(({ id }) => id !== 'name' && id !== 'result')
            .map(({ id, header }) => (
              <Checkbox
                key={id}
                label={header}
                checked={!hidden.has(id)}
                onChange={() => {
                  const next = new Set(hidden)
                  if (!next.delete(id)) next.add(id)
                  showColumns([...next].filter(Boolean))
                }}
              />
            ))}
        </div>
      </details>
    </div>
  )
}
