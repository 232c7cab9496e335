import { formatCost, formatCount, formatShare } from '../../format.ts'
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { api } from '../../api/client.ts'
import { Button } from '../../ui/button.tsx'
import { curlOf } from '../../ui/copy-as-curl.tsx'
import { ConfirmDialog } from '../../ui/confirm-dialog.tsx'
import { EmptyState } from '../../ui/empty-state.tsx'
import { ErrorBox } from '../../ui/error-box.tsx'
import { Skeleton } from '../../ui/skeleton.tsx'
import { Badge } from '../../ui/status.tsx'
import { Time } from '../../ui/time.tsx'
import { tell } from '../../ui/toast.tsx'
import { useSearchText } from '../../search-state.ts'
import { useDisabledReason } from '../../api/disabled-reason.ts'
import { BudgetForm } from './budget-form.tsx'
import { budgetPeriods, budgetScopes } from './budget-labels.ts'
import { SubjectName } from './budget-subject.tsx'
import { Meter } from './meter.tsx'
import type { Budget } from '#sdk/types.ts'

/** Limits of what may be spent: real ones, which calls wait at. */
export function Budgets({ project }: { project: string }) {
  const [url, setUrl] = useSearchText()
  const queries = useQueryClient()
  const budgets = useQuery({
    queryKey: ['budgets', project],
    queryFn: () => api.budgets.list(project, { limit: 100 }).page(),
    refetchInterval: 15_000,
  })
  const again = () => queries.invalidateQueries({ queryKey: ['budgets', project] })
  const named = (id: string | undefined) => budgets.data?.items.find((budget) => budget.id === id)
  const removed = url.panel === 'remove' ? named(url.id) : undefined
  const changed = url.panel === 'budget' ? named(url.id) : undefined
  const close = () => setUrl({ panel: undefined, id: undefined })
  const mayNot = useDisabledReason('agents')
  const add = (
    <Button reason={mayNot} kind="primary" onClick={() => setUrl({ panel: 'budget' })}>
      Set a budget
    </Button>
  )
  return (
    <>
      {budgets.isPending && <Skeleton label="Loading budgets" />}
      <ErrorBox error={budgets.error} retry={() => void budgets.refetch()} />
      {budgets.data?.total === 0 && (
        <EmptyState
          title="No budgets"
          actions={add}
          command={curlOf('POST', `/api/v1/projects/${project}/budgets`, {
            body: { scope: 'project', max_cost_usd: 10, period: 'day' },
          })}
        >
          A budget limits what an agent, a key, a project or the organization may spend, in dollars or tokens. Tasks
          wait when it is used up.
        </EmptyState>
      )}
      {budgets.data && budgets.data.total > 0 && (
        <>
          <div className="mb-3">{add}</div>
          <ul className="grid grid-cols-1 gap-2 lg:grid-cols-2">
            {budgets.data.items.map((budget) => (
              <Item
                key={budget.id}
                {...budget}
                project={project}
                mayNot={mayNot}
                onChange={() => setUrl({ panel: 'budget', id: budget.id })}
                onRemove={() => setUrl({ panel: 'remove', id: budget.id })}
              />
            ))}
          </ul>
        </>
      )}
      {url.panel === 'budget' && (url.id === undefined || changed) && (
        <BudgetForm
          key={url.id}
          project={project}
          budget={changed}
          mayNot={mayNot}
          close={close}
          onSaved={() => void again()}
        />
      )}
      <ConfirmDialog
        isOpen={removed !== undefined}
        close={close}
        refused={mayNot}
        title="Remove the budget?"
        action="Remove budget"
        run={async () => {
          await api.budgets.delete(project, removed!.id)
          tell('Budget removed')
          await again()
        }}
      >
        <p>Tasks that wait for it continue at once. Only the remaining budgets limit what they spend.</p>
      </ConfirmDialog>
    </>
  )
}

function Item({
  onChange,
  onRemove,
  mayNot,
  project,
  ...budget
}: Budget & { onChange: () => void; onRemove: () => void; mayNot: string | undefined; project: string }) {
  const {
    scope,
    subject,
    period,
    max_cost_usd,
    max_tokens,
    max_sandbox_seconds,
    warn_percent,
    spent,
    reserved,
    resets_at,
  } = budget
  const bars = [
    ...(max_cost_usd === null ? [] : [{ unit: 'cost', spent: spent.cost_usd, limit: max_cost_usd, of: formatCost }]),
    ...(max_tokens === null
      ? []
      : [{ unit: 'tokens', spent: spent.tokens, limit: max_tokens, of: (value: number) => formatCount(value) }]),
    ...(max_sandbox_seconds === null
      ? []
      : [
          {
            unit: 'sandbox',
            spent: spent.sandbox_seconds,
            limit: max_sandbox_seconds,
            of: (value: number) => `${formatCount(Math.round(value))} s`,
          },
        ]),
  ]
  return (
    <li className="rounded-md border border-line p-3">
      <div className="flex flex-wrap items-start justify-between gap-2">
        <div>
          <div className="text-sm font-medium">
            {budgetScopes[scope]}, {budgetPeriods[period]}
          </div>
          {scope !== 'project' && <SubjectName project={project} budget={budget} />}
        </div>
        <div className="flex gap-2">
          <Button
            reason={mayNot}
            onClick={onChange}
            aria-label={`Change the budget of ${subject}, ${budgetPeriods[period]}`}
          >
            Change
          </Button>
          <Button
            reason={mayNot}
            onClick={onRemove}
            aria-label={`Remove the budget of ${subject}, ${budgetPeriods[period]}`}
          >
            Remove
          </Button>
        </div>
      </div>
      {bars.map(({ unit, spent: used, limit, of }) => {
        const share = limit === 0 ? 1 : Math.min(1, used / limit)
        return (
          <div key={unit} className="mt-2 text-sm">
            <div className="flex flex-wrap justify-between gap-2">
              <span className="tabular-nums">
                {of(used)} of {of(limit)} {unit === 'tokens' && 'tokens'}
                {unit === 'sandbox' && 'in the sandbox'}
              </span>
              {share >= 1 ? (
                <Badge tone="bad">{unit === 'sandbox' ? 'spent: programs are refused' : 'spent: tasks wait'}</Badge>
              ) : share * 100 >= warn_percent ? (
                <Badge tone="warn">{formatShare(share)}</Badge>
              ) : (
                <span className="text-soft">{formatShare(share)}</span>
              )}
            </div>
            <Meter share={share} isWide />
          </div>
        )
      })}
      <p className="mt-2 text-xs text-soft">
        Warns at {formatShare(warn_percent / 100)}.{' '}
        {reserved.tokens > 0 && `${formatCount(reserved.tokens)} tokens are reserved by calls under way. `}
        {resets_at === null ? 'Never resets.' : 'Resets '}
        {resets_at !== null && <Time at={resets_at} />}
      </p>
    </li>
  )
}
