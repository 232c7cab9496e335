import type { Logger } from 'pino'
import type { BudgetScope } from '#contract/resources/budget-window.ts'
import type { Sql } from '../../platform/postgres/database.ts'
import { ToolError, type SandboxAllowance } from '../tools/tool.ts'
import { subjectsOf, type Spender } from '../budgets/budget-rows.ts'

/** A program with less time could do nothing. */
const leastSeconds = 0.05

/** The sandbox seconds that a program of a task may take from the task's budgets. */
export type SandboxSeconds = (spender: Spender) => SandboxAllowance

/**
 * Reserves sandbox seconds in budgets. A program takes the maximum before it starts, and returns the rest afterwards.
 * So the limit also holds for programs that run at once, and after a crash the seconds count as used in their period.
 */
export function sandboxSeconds(sql: Sql, log: Logger): SandboxSeconds {
  return (spender) => {
    let taken: Taken | undefined
    return {
      async take(seconds) {
        const found = await takeSeconds(sql, subjectsOf(spender), seconds)
        if (!found) return seconds
        if (found.taken === null) throw nothingLeft(found)
        taken = { budget_ids: found.budget_ids, starts: found.starts, seconds: found.taken }
        return found.taken
      },
      async settle(used) {
        const unused = taken ? taken.seconds - used : 0
        if (!taken || unused <= 0) return
        // The program's result matters more than the exact count: without this write the seconds count as used.
        await releaseSeconds(sql, taken, unused).catch((error: unknown) =>
          log.warn({ err: error }, 'unused sandbox seconds could not be returned to budgets; they count as used'),
        )
      },
    }
  }
}

interface Taken {
  budget_ids: string[]
  /** The start of each budget's period, in the same order. */
  starts: string[]
  seconds: number
}

interface Found {
  budget_ids: string[]
  starts: string[]
  /** Null if there is no room. */
  taken: number | null
  /** The fullest budget. */
  id: string
  scope: BudgetScope
  max_sandbox_seconds: number
}

/**
 * A single statement, so that programs that start at once share the rest. Undefined if no budget limits the sandbox.
 */
async function takeSeconds(sql: Sql, subjects: readonly string[], seconds: number): Promise<Found | undefined> {
  const [found] = await sql<Found>`
    with mine as materialized (
      select id, scope, max_sandbox_seconds, sandbox_window, spent_sandbox_seconds,
        case period when 'total' then 'epoch'::timestamptz else date_trunc(period, now(), 'UTC') end as starts
      from budget where subject = any(${[...subjects]}) and max_sandbox_seconds is not null order by id for update
    ), room as (
      select id, scope, max_sandbox_seconds, starts,
        case when sandbox_window = starts then spent_sandbox_seconds else 0 end as spent
      from mine
    ), fullest as (
      select id, scope, max_sandbox_seconds, max_sandbox_seconds - spent as left_seconds from room order by 4, 1 limit 1
    ), given as (
      select case when left_seconds >= ${leastSeconds}::float8 then least(left_seconds, ${seconds}::float8) end as taken from fullest
    ), charged as (
      update budget b set spent_sandbox_seconds = room.spent + given.taken, sandbox_window = room.starts
      from room, given where b.id = room.id and given.taken is not null
    )
    select (select array_agg(id order by id) from room) as budget_ids, (select array_agg(starts order by id) from room) as starts,
      given.taken, fullest.id, fullest.scope, fullest.max_sandbox_seconds
    from fullest, given`
  return found
}

/** Returns unused seconds, except to budgets whose period has ended since. */
async function releaseSeconds(sql: Sql, { budget_ids, starts }: Taken, seconds: number): Promise<void> {
  await sql`
    update budget b set spent_sandbox_seconds = greatest(0, b.spent_sandbox_seconds - ${seconds}::float8)
    from (
      select l.id from budget l join unnest(${budget_ids}::text[], ${starts}::timestamptz[]) as c(id, starts) on c.id = l.id
      where l.sandbox_window = c.starts order by l.id for update of l
    ) m where b.id = m.id`
}

function nothingLeft({ id, scope, max_sandbox_seconds }: Found): ToolError {
  return new ToolError(
    'sandbox_budget_spent',
    `The program was not run: budget ${id} (${scope.replace('_', ' ')}) has used all of its ${max_sandbox_seconds} sandbox seconds.`,
  )
}
