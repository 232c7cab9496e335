import { setTimeout as delay } from 'node:timers/promises'
import { agentMoves } from '#contract/resources/agent-lifecycle.ts'
import { taskMoves } from '#contract/tasks/task-lifecycle.ts'
import type { Sql } from '../../server/src/platform/postgres/database.ts'
import { checkEffects, type JournaledCall } from '../../server/test/history/check-effects.ts'
import { checkMoves, type Move } from '../../server/test/history/check-moves.ts'
import { checkSequences, type Watch } from '../../server/test/history/check-sequences.ts'
import { checkCancels, checkSet, type FoundTask } from '../../server/test/history/check-set.ts'
import { checkTurns } from '../../server/test/history/check-turns.ts'
import type { Cluster } from '../cluster/cluster.ts'
import { internalErrors, journaledCalls, leftovers, listEvents, listTasks, readMoves, readTurns } from './history.ts'
import type { Load } from '../workload/load.ts'
import type { World } from '../workload/world.ts'

/** What tasks were given and worked on with, while something was being hurt. */
export interface SystemUnderTest {
  cluster: Cluster
  load: Load
  world: World
  sql: Sql
  agents: readonly string[]
}

/** What is there after all is quiet. */
export interface RunHistory {
  tasks: FoundTask[]
  watches: Watch[]
  journaled: JournaledCall[]
  moves: Move[]
  agentMoves: Move[]
  turns: Map<string, string[]>
  events: Watch[]
  /** Failures that nothing excuses, and what should be gone. */
  wrong: string[]
}

/**
 * Stops all faults and waits until every task has ended. Throws when the number of open tasks has not fallen for
 * `stalled_ms`: the wait grows with the load, and ends soon where nothing moves. Returns how long it took, in seconds.
 */
export async function settle(
  { world, load, cluster, agents, sql }: SystemUnderTest,
  stalled_ms: number,
): Promise<number> {
  world.heal()
  await load.stop()
  await cluster.whole()
  const healed = performance.now()
  for (const agent of agents) await load.ask('POST', `/agents/${agent}/restart`)
  let [least, since] = [Infinity, performance.now()]
  for (;;) {
    const answered = await load.answerApprovals()
    const open = await countOpen(sql)
    if (answered === 0 && open === 0) return (performance.now() - healed) / 1000
    if (open < least || answered > 0) [least, since] = [Math.min(least, open), performance.now()]
    if (performance.now() - since > stalled_ms)
      throw new Error(`${open} tasks are open and none has ended for ${stalled_ms / 1000} s: ${await openTasks(sql)}`)
    await delay(20)
  }
}

/** Reads what callers, watchers, journals and the database say of the tasks. */
export async function readHistory({ load, sql }: SystemUnderTest): Promise<RunHistory> {
  const tasks = await listTasks(load)
  return {
    tasks,
    watches: await load.watches(10_000),
    journaled: await journaledCalls(sql),
    moves: await readMoves(sql, 'task'),
    agentMoves: await readMoves(sql, 'agent'),
    turns: await readTurns(sql),
    events: await listEvents(load, tasks),
    wrong: [...(await internalErrors(sql)), ...(await leftovers(sql))],
  }
}

/** What is wrong, by what was promised. */
export interface Verdict {
  /** A task that was acknowledged and is gone, or an event that a watcher was not told. */
  lost: string[]
  /** A step whose effect may have happened, and that was made again. */
  twice: string[]
  /** A status that moved as it may not, or a task that did not wait for its turn. */
  moved: string[]
  /** A failure that nothing excuses, or what should be gone. */
  left: string[]
}

export function checkHistory(
  { load, world }: Pick<SystemUnderTest, 'load' | 'world'>,
  runHistory: RunHistory,
): Verdict {
  const { tasks, watches, journaled, moves, turns, events } = runHistory
  return {
    lost: [
      ...checkSet(load.history.of('create'), tasks),
      ...checkCancels(load.history.of('cancel'), tasks),
      ...checkSequences([...watches, ...events]),
    ],
    twice: checkEffects(world.effects, journaled),
    moved: [
      // A process with a free slot stores the task that it claims as running (decision 0028).
      ...checkMoves(moves, taskMoves, ['queued', 'running']),
      ...checkTurns(moves, turns),
      ...checkMoves(runHistory.agentMoves, agentMoves, ['running']),
    ],
    left: runHistory.wrong,
  }
}

async function countOpen(sql: Sql): Promise<number> {
  const [row] = await sql<{ open: number }>`select count(*)::int as open from task where finished_at is null`
  return row!.open
}

/** Some open tasks, for the message of a failure. */
async function openTasks(sql: Sql): Promise<string> {
  const rows = await sql<{ id: string; status: string; wait: { reason: string } | null }>`
    select id, status, wait from task where finished_at is null order by created_at limit 10`
  return rows.map(({ id, status, wait }) => `${id} ${status}${wait ? ` for ${wait.reason}` : ''}`).join(', ')
}

/** How often tasks were taken over from workers that were killed under them. */
export async function takenOver(sql: Sql): Promise<number> {
  const [row] = await sql<{ count: number }>`
    select count(*)::int as count from task_event where type = 'task.retrying' and data->>'reason' = 'worker_lost'`
  return row!.count
}

/** How often calls reached the observer again, by their safety. */
export function repeated({ effects }: World): string {
  const bySafety = Map.groupBy(effects, ({ safety }) => safety)
  return [...bySafety]
    .map(([safety, all]) => `${all.length - new Set(all.map(({ call }) => call)).size} of ${all.length} ${safety}`)
    .join(', ')
}
