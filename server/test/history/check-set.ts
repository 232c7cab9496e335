import { isFinished, type TaskState } from '#contract/tasks/task-lifecycle.ts'
import type { Operation } from './history.ts'

/** A task that is there after all is quiet; `key` is what its creator marked it with. */
export interface FoundTask {
  id: string
  key: string
  status: TaskState
}

/**
 * Whether no acknowledged task is lost: every one that was answered `ok` exists once and has ended; a refused one does
 * not exist; one of unknown outcome may or may not; and no other task exists. Returns what is wrong.
 */
export function checkSet(creations: readonly Operation[], found: readonly FoundTask[]): string[] {
  const asked = Map.groupBy(creations, ({ key }) => key)
  const there = Map.groupBy(found, ({ key }) => key)
  const wrong: string[] = []
  for (const [key, operations] of asked) {
    const tasks = there.get(key) ?? []
    const wasAcknowledged = operations.some(({ outcome }) => outcome === 'ok')
    const mayBeThere = operations.some(({ outcome }) => outcome !== 'fail')
    if (wasAcknowledged && tasks.length === 0) wrong.push(`task ${key} was acknowledged and is lost`)
    if (!mayBeThere && tasks.length > 0) wrong.push(`task ${key} was refused and is there all the same`)
    if (tasks.length > 1)
      wrong.push(`task ${key} was created ${tasks.length} times: ${tasks.map(({ id }) => id).join()}`)
  }
  for (const { id, key, status } of found) {
    if (!asked.has(key)) wrong.push(`task ${id} (${key}) is there and was never asked for`)
    if (!isFinished(status)) wrong.push(`task ${id} (${key}) has not ended: it is ${status}`)
  }
  return wrong
}

/** Whether no cancellation that was answered with 200 was a false success: its task is canceled. */
export function checkCancels(cancellations: readonly Operation[], found: readonly FoundTask[]): string[] {
  const statuses = new Map(found.map(({ id, status }) => [id, status]))
  return cancellations.flatMap(({ key, status }) =>
    status === 200 && statuses.get(key) !== 'canceled'
      ? [`task ${key} was said to be canceled and is ${statuses.get(key) ?? 'lost'}`]
      : [],
  )
}
