import { setTimeout as delay } from 'node:timers/promises'
import { isObject } from '#contract/core/merge-patch.ts'
import type { Sql } from '../../platform/postgres/database.ts'
import { holdsPresenceLock } from '../maintenance/leases.ts'
import { noteLeft, type WorkRow } from '../journal/work.queries.ts'
import type { Step } from '../task.ts'
import type { Lease, RemoteContext } from './lease.ts'

/**
 * Matches the calls of remote workers with steps. Workers give model and tool calls no ids: the n-th call with a digest
 * is the n-th step with it. If a connection or a process broke before the worker received a result, the repeated call
 * is the same call, also while it is still in flight.
 */
export interface Calls {
  /** The key of the next call with this digest, and its step if the call was started before. The task is locked. */
  find(lease: Lease, digest: string, at: Journaled & { tx: Sql }): Promise<{ key: string; step: Step | undefined }>
  /** Whether earlier workers left completed steps that this one has not requested. */
  unseen(lease: Lease, row: WorkRow, steps: readonly Step[]): boolean
  /** Records that a request waits here for a call, until it leaves or `signal` aborts. */
  enter(lease: Lease, key: string, signal: AbortSignal): WaitedCall
  /** Makes a call, which continues even if its request is gone. */
  make<T>(lease: Lease, key: string, work: () => Promise<T>): Promise<T>
  /**
   * A call in flight that its request left or that an earlier worker started, here or in another process. `again`
   * resolves when the caller should check again; undefined if no such call is in flight.
   */
  made(lease: Lease, key: string, step: Step | undefined, tx: Sql): Promise<Looking | undefined>
  /** Whether a process is making one of these steps of a task: a call continues after its lease has ended. */
  isMaking(tx: Sql, task_id: string, steps: readonly Step[]): Promise<boolean>
  /** Number of calls in flight here for a lease. */
  count(lease: Lease): number
}

/** A call that a request waits for. */
export interface WaitedCall {
  key: string
  /** Stops the wait; may be called more than once. */
  leave: () => void
}

export interface Looking {
  again: Promise<unknown>
}

/** Poll interval for a call of another process. */
const poll_ms = 500
/** A call of another process that takes longer than this is started again. */
const callMost_ms = 15 * 60_000

interface Journaled {
  row: WorkRow
  steps: readonly Step[]
}

/** Maximum number of calls of a task with one digest: more than any task has steps. */
const sameMax = 10_000

/** The call that a step's input names; undefined if the step is not a call of a remote worker. */
function callOf({
  input,
}: Step): { key: string; claim: number; holder: string | undefined; left: boolean } | undefined {
  if (!isObject(input) || typeof input['claim'] !== 'number') return undefined
  const key = input['key'] ?? input['tool_call_id']
  if (typeof key !== 'string') return undefined
  const { claim, holder, left } = input
  return { key, claim, holder: typeof holder === 'string' ? holder : undefined, left: left === true }
}

/** Tracks the calls in flight in this process, which other processes know by `worker_id`. */
export function makeCalls({ sql, worker_id, log }: Pick<RemoteContext, 'sql' | 'worker_id' | 'log'>): Calls {
  /** Calls that requests wait for, by lease, and calls in flight, by task. */
  const present = new Map<string, Map<string, symbol>>()
  const making = new Map<string, Map<string, Promise<unknown>>>()
  const nameOf = ({ task_id, attempt }: Lease): string => `${task_id}:${attempt}`

  /**
   * Whether another living process makes the call, for this lease or an earlier one. The call of a dead process is
   * started again.
   */
  const isElsewhere = async (tx: Sql, step: Step | undefined): Promise<boolean> => {
    const call = step && callOf(step)
    if (step?.status !== 'started' || call?.holder === undefined || call.holder === worker_id) return false
    const [row] = await tx.run<{ lives: boolean }>(
      tx.fragment`select ${holdsPresenceLock(tx, tx.fragment`${call.holder}::text`)} and exists (
        select from task_step where task_id = ${step.task_id} and index = ${step.index}
          and started_at > now() - make_interval(secs => ${callMost_ms / 1000})) as lives`,
    )
    return row?.lives === true
  }
  const unset = (all: Map<string, Map<string, unknown>>, name: string, key: string, value: unknown): void => {
    const of = all.get(name)
    if (of?.get(key) !== value) return
    of?.delete(key)
    if (of?.size === 0) all.delete(name)
  }

  return {
    async find(lease, digest, { tx, row, steps }) {
      const here = present.get(nameOf(lease))
      for (let n = 1; n <= sameMax; n += 1) {
        const key = `${digest}_${n}`
        if (row.delivered.includes(key) || here?.has(key)) continue
        const step = steps.findLast((one) => callOf(one)?.key === key && one.type !== 'approval')
        const call = step && callOf(step)
        if (step && call?.claim === lease.attempt && !call.left && (await isElsewhere(tx, step))) continue
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
    enter(lease, key, signal) {
      const name = nameOf(lease)
      const mark = Symbol(key)
      present.set(name, (present.get(name) ?? new Map<string, symbol>()).set(key, mark))
      const leave = (): void => {
        signal.removeEventListener('abort', abandon)
        unset(present, name, key, mark)
      }
      const abandon = (): void => {
        leave()
        if (!making.get(lease.task_id)?.has(key)) return
        noteLeft(sql, lease, key).catch((error: unknown) =>
          log.warn(
            { err: error, task_id: lease.task_id },
            'a lost connection could not be recorded; its call may be made twice',
          ),
        )
      }
      signal.addEventListener('abort', abandon)
      if (signal.aborted) abandon()
      return { key, leave }
    },
    async make(lease, key, work) {
      const made = work()
      making.set(lease.task_id, (making.get(lease.task_id) ?? new Map<string, Promise<unknown>>()).set(key, made))
      try {
        return await made
      } finally {
        unset(making, lease.task_id, key, made)
      }
    },
    async made(lease, key, step, tx) {
      const here = making.get(lease.task_id)?.get(key)
      if (here) return { again: here.catch(() => {}) }
      return (await isElsewhere(tx, step)) ? { again: delay(poll_ms) } : undefined
    },
    async isMaking(tx, task_id, steps) {
      const here = making.get(task_id)
      for (const step of steps) {
        const key = callOf(step)?.key
        if ((key !== undefined && here?.has(key)) || (await isElsewhere(tx, step))) return true
      }
      return false
    },
    count: (lease) =>
      new Set([...(present.get(nameOf(lease))?.keys() ?? []), ...(making.get(lease.task_id)?.keys() ?? [])]).size,
  }
}
