import { isObject } from '#contract/core/merge-patch.ts'
import { isTerminalEvent } from '#contract/tasks/task-lifecycle.ts'

/** An event as a reader received it. */
export interface SeenEvent {
  sequence: number
  type: string
  data: unknown
}

/** All events that one watcher of a task received, over all its connections, in order of arrival. */
export interface Watch {
  watcher: string
  task_id: string
  events: SeenEvent[]
}

/**
 * Whether every watcher got every event of its task exactly once, in order, until the end: sequences are dense from 1,
 * all watchers got the same, and the one event that ends a task is the last. Returns what is wrong.
 */
export function checkSequences(watches: readonly Watch[]): string[] {
  const wrong: string[] = []
  const received = new Map<string, { text: string; watcher: string }>()
  for (const { watcher, task_id, events } of watches) {
    const where = `${watcher} of ${task_id}`
    const gap = events.findIndex(({ sequence }, i) => sequence !== i + 1)
    if (gap >= 0) wrong.push(`${where} got ${events[gap]!.sequence} as event ${gap + 1}`)
    const ends = events.filter(({ type }) => isTerminalEvent(type)).length
    const last = events.at(-1)?.type
    if (last === undefined || !isTerminalEvent(last)) wrong.push(`${where} got ${last ?? 'nothing'} last`)
    if (ends > 1) wrong.push(`${where} got ${ends} ends`)
    for (const { sequence, ...event } of events) {
      const text = canonical(event)
      const before = received.get(`${task_id}/${sequence}`)
      if (before === undefined) received.set(`${task_id}/${sequence}`, { text, watcher })
      else if (before.text !== text)
        wrong.push(`${where} got ${text} as event ${sequence}, ${before.watcher} got ${before.text}`)
    }
  }
  return wrong
}

/** JSON in one form: PostgreSQL stores the members of an object in its own order. */
function canonical(value: unknown): string {
  return JSON.stringify(value, (_name, member: unknown) =>
    isObject(member)
      ? Object.fromEntries(Object.entries(member).toSorted(([one], [other]) => (one < other ? -1 : 1)))
      : member,
  )
}
