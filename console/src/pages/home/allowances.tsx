import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { api } from '../../api/client.ts'
import { formatCost, formatCount } from '../../format.ts'
import { paths } from '../../paths.ts'
import { ErrorBox } from '../../ui/error-box.tsx'
import { Panel } from '../../ui/page.tsx'
import { Time } from '../../ui/time.tsx'
import { budgetPeriods, budgetScopes } from '../usage/budget-labels.ts'
import { limitWords } from '../usage/limit-labels.ts'
import { Meter } from '../usage/meter.tsx'

/** Budgets and rate limits that are shown here, the fullest of each; the page of usage has all. */
const shown = { budgets: 4, limits: 2 }

interface Allowance {
  label: string
  used: string
  /** Of the allowance, 0 to 1. */
  share: number
  resets_at: string | null
}

/** What was used of what may be used: the fullest budgets of the project, and the fullest rate limits of this sign-in. */
export function Allowances({ project_id }: { project_id: string }) {
  const budgets = useQuery({
    queryKey: ['budgets', project_id],
    queryFn: () => api.budgets.list(project_id, { limit: 100 }).page(),
    refetchInterval: 15_000,
  })
  const limits = useQuery({ queryKey: ['limits'], queryFn: () => api.user.limits(), refetchInterval: 15_000 })
  const ofBudgets = (budgets.data?.items ?? []).flatMap((budget): Allowance[] => {
    const { scope, period, max_cost_usd, max_tokens, spent, resets_at } = budget
    const label = `${budgetScopes[scope]}, ${budgetPeriods[period]}`
    return [
      ...(max_cost_usd === null
        ? []
        : [
            {
              label,
              used: `${formatCost(spent.cost_usd)} of ${formatCost(max_cost_usd)}`,
              share: shareOf(spent.cost_usd, max_cost_usd),
              resets_at,
            },
          ]),
      ...(max_tokens === null
        ? []
        : [
            {
              label,
              used: `${formatCount(spent.tokens)} of ${formatCount(max_tokens)} tokens`,
              share: shareOf(spent.tokens, max_tokens),
              resets_at,
            },
          ]),
    ]
  })
  const ofLimits = (limits.data?.limits ?? [])
    .filter(({ used }) => used > 0)
    .map(({ name, window, used, limit, resets_at }): Allowance => {
      const each = `a${window === 'hour' ? 'n' : ''} ${window}`
      return {
        label: limitWords[name] ?? name,
        used: `${formatCount(used)} of ${formatCount(limit)} ${each}`,
        share: shareOf(used, limit),
        resets_at,
      }
    })
  const hasNoBudget = budgets.data?.total === 0
  return (
    <Panel
      title="Usage and limits"
      actions={
        <Link {...paths.usage(project_id)} aria-label="All usage and limits">
          All
        </Link>
      }
    >
      <ErrorBox error={budgets.error ?? limits.error} />
      <ul className="min-h-24">
        {hasNoBudget && (
          <li className="border-b border-line px-4 py-2.5 text-soft">
            No budget is set.{' '}
            <Link {...paths.usage(project_id, { tab: 'budgets', panel: 'budget' })} className="underline">
              Set a budget
            </Link>
          </li>
        )}
        {[...fullest(ofBudgets, shown.budgets), ...fullest(ofLimits, shown.limits)].map((one) => (
          <li key={`${one.label} ${one.used}`} className="border-b border-line px-4 py-2.5 last:border-0">
            <div className="flex flex-wrap justify-between gap-x-3 text-sm">
              <span className="font-medium">{one.label}</span>
              <span className="text-soft tabular-nums">
                {one.used}
                {one.resets_at !== null && (
                  <>
                    , resets <Time at={one.resets_at} />
                  </>
                )}
              </span>
            </div>
            <Meter share={one.share} isWide />
          </li>
        ))}
      </ul>
    </Panel>
  )
}

function shareOf(used: number, limit: number): number {
  return limit === 0 ? 1 : Math.min(1, used / limit)
}

function fullest(of: readonly Allowance[], count: number): Allowance[] {
  return of.toSorted((a, b) => b.share - a.share).slice(0, count)
}
