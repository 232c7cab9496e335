import type { Operation } from './history.ts'

/**
 * Whether created objects exist and removed ones do not, from the `create` and `delete` operations of a key and the
 * keys `found` after all is quiet: what was acknowledged holds, what was refused did not happen, an unknown outcome may
 * be either. Keys are never reused. Returns what is wrong.
 */
export function checkStored(operations: readonly Operation[], found: readonly string[]): string[] {
  const wrong: string[] = []
  const made = Map.groupBy(
    operations.filter(({ op }) => op === 'create'),
    ({ key }) => key,
  )
  const removed = Map.groupBy(
    operations.filter(({ op }) => op === 'delete'),
    ({ key }) => key,
  )
  const there = Map.groupBy(found, (key) => key)
  for (const [key, creations] of made) {
    const removals = removed.get(key) ?? []
    const count = there.get(key)?.length ?? 0
    const wasMade = creations.some(({ outcome }) => outcome === 'ok')
    const mayBeMade = creations.some(({ outcome }) => outcome !== 'fail')
    const wasRemoved = removals.some(({ outcome }) => outcome === 'ok')
    const mayBeRemoved = removals.some(({ outcome }) => outcome !== 'fail')
    if (count > 1) wrong.push(`${key} was made ${count} times`)
    if (count === 0 && wasMade && !mayBeRemoved) wrong.push(`${key} was acknowledged and is lost`)
    if (count > 0 && wasRemoved) wrong.push(`${key} was said to be removed and is there`)
    if (count > 0 && !mayBeMade) wrong.push(`${key} was refused and is there all the same`)
  }
  for (const key of there.keys()) if (!made.has(key)) wrong.push(`${key} is there and was never asked for`)
  return wrong
}

/** Whether at most one of several claims of the same thing (a name, a code) was acknowledged. Returns what is wrong. */
export function checkUnique(claims: readonly { key: string; by: string; outcome: Operation['outcome'] }[]): string[] {
  return [...Map.groupBy(claims, ({ key }) => key)].flatMap(([key, all]) => {
    const owners = new Set(all.flatMap(({ by, outcome }) => (outcome === 'ok' ? [by] : [])))
    return owners.size > 1 ? [`${key} was given to ${owners.size}: ${[...owners].join()}`] : []
  })
}
