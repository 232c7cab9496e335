import { isObject } from '#contract/core/merge-patch.ts'
import type { Sql } from '../../platform/postgres/database.ts'
import { holdsPresenceLock } from '../maintenance/leases.ts'
import type { WorkRow } from '../journal/work.queries.ts'
import type { Step } from '../task.ts'
import type { Lease } from './lease.ts'

/**
 * Which call of a worker is which step. Workers name no calls of models and tools: the n-th call with a digest is the n-th step with
 * it. A call whose result the worker has not got, because a connection or a process broke, is that same call when it comes again.
 */
export interface Calls {
  /** The key of the next call with a digest, and its step where it was begun before. The task is locked. */
  find(lease: Lease, digest: string, at: Journaled & { tx: Sql }): Promise<{ key: string; step: Step | undefined }>
  /** Whether steps of workers before are left that this one has not asked for. */
  unseen(lease: Lease, row: WorkRow, steps: readonly Step[]): boolean
  /** A call is under way here. */
  enter(lease: Lease, key: string): void
  leave(lease: Lease, key: string): void
  /** Calls that are under way here for a lease. */
  count(lease: Lease): number
}

interface Journaled {
  row: WorkRow
  steps: readonly Step[]
}

/** Calls of one digest that a task may have: more than any task has steps. */
const sameMax = 10_000

/** What a step's input says of the call that it is; undefined where no call of a worker made it. */
function callOf({ input }: Step): { key: string; claim: number; holder: string | undefined } | undefined {
  if (!isObject(input) || typeof input['claim'] !== 'number') return undefined
  const key = input['key'] ?? input['tool_call_id']
  if (typeof key !== 'string') return undefined
  return { key, claim: input['claim'], holder: typeof input['holder'] === 'string' ? input['holder'] : undefined }
}

/** Keeps the calls that are under way in this process, which others know by `worker_id`. */
export function makeCalls(worker_id: string): Calls {
  const underWay = new Map<string, Set<string>>()
  const nameOf = ({ task_id, attempt }: Lease): string => `${task_id}:${attempt}`

  /** Whether the process that began a call lives: of a dead one the call is begun again. */
  const isElsewhere = async (tx: Sql, { attempt }: Lease, step: Step): Promise<boolean> => {
    const call = callOf(step)
    if (step.status !== 'started' || call?.claim !== attempt || call.holder === undefined || call.holder === worker_id)
      return false
    const [row] = await tx.run<{ lives: boolean }>(
      tx.fragment`select ${holdsPresenceLock(tx, tx.fragment`${call.holder}::text`)} as lives`,
    )
    return row?.lives === true
  }

  return {
    async find(lease, digest, { tx, row, steps }) {
      const here = underWay.get(nameOf(lease))
      for (let n = 1; n <= sameMax; n += 1) {
        const key = `${digest}_${n}`
        if (row.delivered.includes(key) || here?.has(key)) continue
        const step = steps.findLast((one) => callOf(one)?.key === key && one.type !== 'approval')
        if (step && (await isElsewhere(tx, lease, step))) continue
        return { key, step }
      }
      throw new Error(`a task has more than ${sameMax} equal calls`)
    },
    unseen({ attempt }, row, steps) {
      return steps.some((step) => {
        const call = step.type === 'model_call' ? callOf(step) : undefined
        return (
          call !== undefined && call.claim < attempt && !row.delivered.includes(call.key) && step.status === 'completed'
        )
      })
    },
    enter(lease, key) {
      const name = nameOf(lease)
      underWay.set(name, (underWay.get(name) ?? new Set()).add(key))
    },
    leave(lease, key) {
      const name = nameOf(lease)
      const all = underWay.get(name)
      all?.delete(key)
      if (all?.size === 0) underWay.delete(name)
    },
    count: (lease) => underWay.get(nameOf(lease))?.size ?? 0,
  }
}
