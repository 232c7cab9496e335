import { formatCost, formatCount, plural } from '../../format.ts'
import { useQuery, type UseQueryResult } from '@tanstack/react-query'
import { hasScope } from '#contract/core/scopes.ts'
import { api } from '../../api/client.ts'
import { DataTable, type Column } from '../../ui/data-table.tsx'
import { ErrorBox } from '../../ui/error-box.tsx'
import { Skeleton } from '../../ui/skeleton.tsx'
import { Time } from '../../ui/time.tsx'
import type { Operations } from '#sdk/types.ts'
import type { Scope } from './scope-presets.ts'

type Activity = Operations['getApiKeyActivity']['result']
type Call = Activity['calls'][number]

export function useKeyActivity(id: string): UseQueryResult<Activity> {
  return useQuery({
    queryKey: ['api-keys', id, 'activity'],
    queryFn: () => api.apiKeys.activity(id),
    refetchInterval: 10_000,
  })
}

/** What programs do with a key: which operations they call, and what its tasks used. */
export function KeyActivity({ data, error, isPending, refetch }: UseQueryResult<Activity>) {
  if (isPending) return <Skeleton label="Loading what the key is used for" />
  if (!data) return <ErrorBox error={error} retry={() => void refetch()} />
  const { usage, calls } = data
  return (
    <section aria-label="Use in the last 30 days">
      <h3 className="mb-1 text-sm font-semibold">Used in the last 30 days</h3>
      <p className="mb-2 text-sm text-soft">
        Its tasks took {formatCount(usage.input_tokens)} input and {formatCount(usage.output_tokens)} output tokens in{' '}
        {formatCount(usage.calls)} calls of models and tools: {formatCost(usage.cost_usd)}.
      </p>
      {calls.length > 0 && (
        <details>
          <summary className="min-h-6 cursor-pointer text-sm">
            {plural(calls.length, 'operation was', 'operations were')} called
          </summary>
          <DataTable label="Operations called" columns={columns} rows={calls} keyOf={({ operation }) => operation} />
        </details>
      )}
    </section>
  )
}

const columns: Column<Call>[] = [
  {
    id: 'operation',
    header: 'Operation',
    cell: ({ operation }) => <code className="font-mono text-xs">{operation}</code>,
  },
  {
    id: 'scope',
    header: 'Needs',
    cell: ({ required_scope }) =>
      required_scope === null ? 'any key' : <code className="font-mono text-xs">{required_scope}</code>,
  },
  { id: 'requests', header: 'Requests', align: 'right', cell: ({ requests }) => formatCount(requests) },
  { id: 'last', header: 'Last', cell: ({ last_at }) => <Time at={last_at} /> },
]

/** Which of the operations that programs call would be refused with these scopes, before they are saved. */
export function ScopeWarning({ calls, scopes }: { calls: readonly Call[] | undefined; scopes: readonly Scope[] }) {
  const lost = (calls ?? []).filter(
    ({ required_scope }) => required_scope !== null && !hasScope(scopes, required_scope),
  )
  if (lost.length === 0) return null
  return (
    <div role="status" className="rounded-md border border-warn bg-warn-soft p-3 text-sm">
      <strong>With these scopes, calls that programs make would be refused with 403:</strong>
      <ul className="mt-1 list-disc pl-5">
        {lost.slice(0, shownMax).map(({ operation, required_scope, requests, last_at }) => (
          <li key={operation}>
            <code className="font-mono text-xs">{operation}</code> needs{' '}
            <code className="font-mono text-xs">{required_scope}</code>: {formatCount(requests)} in 30 days, the latest{' '}
            <Time at={last_at} />
          </li>
        ))}
      </ul>
      {lost.length > shownMax && <p>and {lost.length - shownMax} more operations.</p>}
    </div>
  )
}

const shownMax = 6
