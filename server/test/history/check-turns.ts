import { isFinished, type TaskState } from '#contract/tasks/task-lifecycle.ts'
import type { Move } from './check-moves.ts'

/**
 * Whether of the tasks that share a turn (a thread, a key) one began only when the one before it had ended. `turnOf` gives
 * the turns of a task by its key. Gives what is wrong.
 */
export function checkTurns(moves: readonly Move[], turnOf: ReadonlyMap<string, readonly string[]>): string[] {
  const wrong: string[] = []
  const holders = new Map<string, string>()
  for (const { key, to } of moves)
    for (const turn of turnOf.get(key) ?? []) {
      const holder = holders.get(turn)
      if (to === 'running' && holder === undefined) holders.set(turn, key)
      if (to === 'running' && holder !== undefined && holder !== key)
        wrong.push(`${key} began while ${holder} had the turn of ${turn}`)
      if (isFinished(to as TaskState) && holder === key) holders.delete(turn)
    }
  return wrong
}
