import type { Logger } from 'pino'
import type { BudgetScope } from '#contract/resources/budget-window.ts'
import type { Sql } from '../../platform/postgres/database.ts'
import { ToolError, type SandboxAllowance } from '../tools/tool.ts'
import { subjectsOf, type Spender } from '../budgets/budget-rows.ts'

/** A program that has less could do nothing in it. */
const leastSeconds = 0.05

/** The seconds of the sandbox that a program of a task may take of the task's budgets. */
export type SandboxSeconds = (spender: Spender) => SandboxAllowance

/**
 * A program takes all the seconds that it may run before it begins, and gives back those that it did not need. So a budget is a
 * limit for programs that run at once too, and what a crash leaves is counted as used, in its period.
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
        // The answer of the program is worth more than the exact count: without this the seconds count as used.
        await giveBack(sql, taken, unused).catch((error: unknown) =>
          log.warn({ err: error }, 'unused seconds of the sandbox were not given back to budgets; they count as used'),
        )
      },
    }
  }
}

interface Taken {
  budget_ids: string[]
  /** The period of each, in that order. */
  starts: string[]
  seconds: number
}

interface Found {
  budget_ids: string[]
  starts: string[]
  /** Null where there is no room. */
  taken: number | null
  /** The fullest budget. */
  id: string
  scope: BudgetScope
  max_sandbox_seconds: number
}

/** One statement, so that programs that begin at once share what is left. Undefined where no budget limits the sandbox. */
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

/** What was taken in a period that is over is not given back to the next. */
async function giveBack(sql: Sql, { budget_ids, starts }: Taken, seconds: number): Promise<void> {
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
    `The program was not run: the ${max_sandbox_seconds} seconds of the sandbox that budget ${id} (${scope.replace('_', ' ')}) allows are used.`,
  )
}
