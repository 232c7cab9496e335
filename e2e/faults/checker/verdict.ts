import { checkRegisters } from '../../../server/test/history/check-register.ts'
import { checkStored, checkUnique } from '../../../server/test/history/check-kept.ts'
import { readHistory, checkHistory, repeated, settle, takenOver } from '../../checker/checker.ts'
import type { Sample } from '../workload/client.ts'
import type { Run } from '../fault.ts'
import type { Environment } from '../environment.ts'

/** After a fault is healed everything must have ended in this time. */
const quiet_ms = 120_000

/** Heals everything, waits for quiet, and holds what happened to R1 to R4. */
export async function holdToPromises(run: Run, environment: Environment): Promise<void> {
  const { driver, sql, world } = environment
  await environment.network.set({ kind: 'fair' })
  await driver.stop()
  const quiet_s = await settle(environment, quiet_ms)
  const runHistory = await readHistory(environment)
  const { lost, twice, moved, left } = checkHistory(environment, runHistory)
  const found = await storedNames(environment)
  const { history, claims, wrong } = driver
  const writes = history.operations.filter(({ op }) => ['create', 'project', 'delete', 'write'].includes(op))
  const registers = history.operations.filter(({ op }) => op === 'read' || op === 'write')
  const acknowledged = writes.filter(({ outcome }) => outcome === 'ok').length + runHistory.tasks.length

  run.say(`quiet ${quiet_s.toFixed(1)} s after the last fault; ${tally(history.operations.map((one) => one.outcome))}`)
  run.say(`calls of tools made again: ${repeated(world)}; tasks taken over: ${await takenOver(sql)}`)
  run.holds('R1', `${acknowledged} acknowledged writes are there`, [
    ...lost,
    ...left,
    ...checkStored(withProjects(history.operations), found),
    ...wrong,
  ])
  run.holds('R2', `${world.effects.length} calls of tools, ${claims.length} claims of names`, [
    ...twice,
    ...checkUnique(claims),
  ])
  run.holds(
    'R3',
    `${registers.length} reads and writes of ${environment.tenants.flatMap((one) => one.registers).length} registers are linearizable`,
    checkRegisters(registers, ''),
  )
  run.holds('R4', `${runHistory.moves.length + runHistory.agentMoves.length} moves of tasks and agents`, moved)
  const usual = percentiles(driver.samples)
  run.say(
    `latency from the scheduled time: p50 ${usual.p50} ms, p99 ${usual.p99} ms of ${driver.samples.length}, faults included`,
  )
}

/**
 * Agents and projects are treated alike here: objects with a unique name. Conflicting claims of one name are checked
 * elsewhere.
 */
function withProjects(operations: Environment['driver']['history']['operations']) {
  return operations
    .filter(({ op }) => ['create', 'project', 'delete'].includes(op))
    .map((one) => (one.op === 'project' ? { ...one, op: 'create' } : one))
}

/** Names of what callers made, as every process lists them. */
async function storedNames({ sql, tenants }: Environment): Promise<string[]> {
  const kept = new Set(tenants.flatMap(({ canary }) => [canary]))
  const rows = await sql<{ name: string }>`
    select name from agent where name like 'canary-%' and name not like '%-kept-%'
    union all select name from project where name like 'canary-%'`
  return rows.map(({ name }) => name).filter((name) => !kept.has(name))
}

/** Of the time from when a request's turn was until its answer, in whole milliseconds. */
export function percentiles(samples: readonly Sample[]): { p50: number; p99: number } {
  const times = samples.map(({ scheduled, returned }) => returned - scheduled).toSorted((one, other) => one - other)
  const at = (share: number): number =>
    Math.round(times[Math.min(times.length - 1, Math.floor(times.length * share))] ?? 0)
  return { p50: at(0.5), p99: at(0.99) }
}

/** Requests that were sent in this time. */
export function sentBetween(samples: readonly Sample[], from: number, to: number): Sample[] {
  return samples.filter(({ sent }) => sent >= from && sent <= to)
}

export function tally(parts: readonly (string | number | undefined)[]): string {
  return [...Map.groupBy(parts, (word) => word)]
    .map(([word, all]) => `${all.length} ${word ?? 'unanswered'}`)
    .join(', ')
}
