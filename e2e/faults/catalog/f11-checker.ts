import { isFast, type ProviderCase } from './f11-cases.ts'
import type { Run, Span } from '../fault.ts'
import { byLength } from '../checker/recovery.ts'
import type { Environment } from '../environment.ts'

/** Tasks of one agent that fail one after the other until it is put into `error` (decision D36). */
export const failuresMax = 5
/** Seconds before the attempts after the first: half of each at least, and the rest by chance. */
const waits_s = [0.5, 1, 2, 4]
/** Requests are written down where they arrive: one that was sent early may arrive late, and the next one not. */
const clockMargin_ms = 100
/** Until a task ends whose provider is not silent, in milliseconds. */
export const end_ms = 60_000

/** A task that was given to an agent, whose model fails as the case says. */
export interface Given {
  id: string
  agent: string
  index: number
  input: string
}

/** What became of it. */
export interface Ended {
  status: string
  code: string | null
  /** From when it was given until its end, in milliseconds. */
  took_ms: number
}

/** Each with the code of what went wrong, after as many requests as that is worth, or fewer where the model is left alone. */
export function checkEnds(
  run: Run,
  cases: readonly ProviderCase[],
  given: readonly Given[],
  ended: ReadonlyMap<string, Ended>,
  came: ReadonlyMap<string, readonly number[]>,
): void {
  const wrong: string[] = []
  const tries: string[] = []
  for (const [index, { what, code, requests, isSpared }] of cases.entries()) {
    const own = given.filter((one) => one.index === index)
    const ends = own.map(({ id }) => ended.get(id))
    const counts = own.map(({ input }) => came.get(input)?.length ?? 0)
    const slowest_ms = Math.max(...ends.map((end) => end?.took_ms ?? Number.POSITIVE_INFINITY))
    run.say(
      `${what}: ${own.length} × ${[...new Set(ends.map((end) => end?.code ?? end?.status ?? 'no end'))].join()}, ` +
        `requests ${Math.min(...counts)} to ${Math.max(...counts)}, the longest ${(slowest_ms / 1000).toFixed(1)} s`,
    )
    for (const end of ends) {
      if (!end) wrong.push(`${what}: a task did not end`)
      else if (end.code !== code || end.status !== (code === null ? 'completed' : 'failed'))
        wrong.push(`${what}: ${end.status} ${end.code}`)
    }
    // Most calls skip a model that does not answer: a task may even fail without a request.
    for (const count of counts)
      if (isSpared ? count > requests : count !== requests) tries.push(`${what}: ${count} requests, not ${requests}`)
  }
  run.holds('R7', `${given.length} tasks of ${cases.length} kinds of failures end with a clear code`, wrong)
  run.holds('R2', 'calls are made as often as they are worth it, five times at most', tries)
  const longest = given
    .filter(({ index }) => isFast(cases[index]!))
    .map(({ id }) => ended.get(id))
    .map((end): Span => ({
      from: performance.now() - (end?.took_ms ?? Number.POSITIVE_INFINITY),
      to: performance.now(),
    }))
    .toSorted(byLength)[0]
  run.within('R7', 'the longest until a task ends whose provider is not silent', end_ms, longest)
}

/** From request to request of a task: never sooner than was said, and not all after the same time. */
export function checkWaits(
  run: Run,
  cases: readonly ProviderCase[],
  given: readonly Given[],
  came: ReadonlyMap<string, readonly number[]>,
): void {
  const early: string[] = []
  const first: number[] = []
  let count = 0
  for (const { index, input } of given) {
    const { what, retry_after, code } = cases[index]!
    // One that asks for a millisecond, or that was no failure, is asked again at once.
    if (code === null || code === 'max_steps_reached' || (/how long/.test(what) && !/without/.test(what))) continue
    const times = came.get(input) ?? []
    for (const [i, at] of times.slice(1).entries()) {
      const waited_ms = at - times[i]!
      const min_ms = (retry_after ?? waits_s[i]! / 2) * 1000 - clockMargin_ms
      count++
      if (i === 0 && retry_after === undefined) first.push(waited_ms)
      if (waited_ms < min_ms) early.push(`${what}: attempt ${i + 2} after ${Math.round(waited_ms)} ms`)
    }
  }
  run.say(
    `first waits without a word of the provider: ${Math.round(Math.min(...first))} to ${Math.round(Math.max(...first))} ms of ${first.length}`,
  )
  run.holds('R6', `${count} waits are no shorter than the schedule, or than the provider asked for`, early)
  const asked = cases.findIndex(({ retry_after }) => retry_after !== undefined)
  const all = given.filter(({ index }) => index === asked).length * cases[asked]!.requests
  run.say(
    `of ${all} requests to a model that asks for patience ${impatient(cases, given, came).length} came in the second half of such a time`,
  )
  // Of two that are by chance, one in the lower and one in the upper half are all but certain among so many.
  const spread_ms = Math.max(...first) - Math.min(...first)
  run.holds('R6', 'waits are spread by chance', spread_ms < 100 ? [`all within ${Math.round(spread_ms)} ms`] : [])
}

/**
 * Requests of any task in the second half of a cooldown of their provider: those that had passed the check before the
 * cooldown was known, and were sent late.
 */
export function impatient(
  cases: readonly ProviderCase[],
  given: readonly Given[],
  came: ReadonlyMap<string, readonly number[]>,
): string[] {
  return cases.flatMap(({ what, retry_after }, index) => {
    if (retry_after === undefined) return []
    const times = given.filter((one) => one.index === index).flatMap(({ input }) => came.get(input) ?? [])
    const wait_ms = retry_after * 1000
    return times
      .filter((at) => times.some((other) => at - other > wait_ms / 2 && at - other < wait_ms - clockMargin_ms))
      .map(() => what)
  })
}

/** Five failed tasks put an agent into `error`, four do not, whatever they failed of (decision D36). */
export async function checkAgents(
  run: Run,
  { sql }: Environment,
  given: readonly Given[],
  ended: ReadonlyMap<string, Ended>,
): Promise<void> {
  const failed = Map.groupBy(given, ({ agent }) => agent)
  const rows = await sql<{ id: string; status: string }>`
    select id, status from agent where id = any(${[...failed.keys()]})`
  const wrong = rows.flatMap(({ id, status }) => {
    const count = failed.get(id)!.filter((one) => ended.get(one.id)?.status === 'failed').length
    const expected = count >= failuresMax ? 'error' : 'running'
    return status === expected ? [] : [`after ${count} failed tasks an agent is ${status}`]
  })
  run.holds(
    'R4',
    `${rows.length} agents, of which ${rows.filter(({ status }) => status === 'error').length} are in error`,
    wrong,
  )
}
