import type { Operation } from './history.ts'

/** An event as it was committed. */
export interface OutboxEvent {
  id: string
  type: string
  data: { project?: { id: number; name: string }; task?: { id: string; status: string } | null }
}

/** What callers did, and what is there after all is quiet. */
export interface OutboxHistory {
  events: readonly OutboxEvent[]
  projects: readonly { id: number; name: string }[]
  tasks: readonly { id: string; status: string }[]
  /** `create` of a project by its name; `rename` and `delete` by its id, the first to another name, once each. */
  operations: readonly Operation[]
}

/** The event of the end of a task; a canceled task has none (decision D93). */
const ends: Readonly<Record<string, string>> = {
  completed: 'agent.completed',
  failed: 'agent.failed',
  expired: 'agent.failed',
}

/**
 * Whether events and their causes were committed together: every acknowledged change has its event, once; a refused one
 * has none; and no event lacks its cause. Returns what is wrong.
 */
export function checkOutbox({ events, projects, tasks, operations }: OutboxHistory): string[] {
  const wrong: string[] = []
  const of = (type: string, key: (event: OutboxEvent) => unknown): Map<string, OutboxEvent[]> =>
    Map.groupBy(
      events.filter((event) => event.type === type),
      (event) => String(key(event)),
    )
  const created = of('project.created', ({ data }) => data.project?.id)
  const deleted = of('project.deleted', ({ data }) => data.project?.id)
  for (const [op, published] of [
    ['create', of('project.created', ({ data }) => data.project?.name)],
    ['rename', of('project.updated', ({ data }) => data.project?.id)],
    ['delete', deleted],
  ] as const) {
    const asked = Map.groupBy(
      operations.filter((operation) => operation.op === op),
      ({ key }) => key,
    )
    for (const key of new Set([...asked.keys(), ...published.keys()])) {
      const count = published.get(key)?.length ?? 0
      const outcomes = (asked.get(key) ?? []).map(({ outcome }) => outcome)
      if (outcomes.includes('ok') && count === 0) wrong.push(`${op} ${key} was acknowledged and has no event`)
      if (outcomes.every((outcome) => outcome === 'fail') && count > 0)
        wrong.push(`${op} ${key} has an event and was ${outcomes.length > 0 ? 'refused' : 'never asked for'}`)
      if (count > 1) wrong.push(`${op} ${key} has ${count} events`)
    }
  }
  const there = new Set(projects.map(({ id }) => String(id)))
  for (const id of there) {
    if (!created.has(id)) wrong.push(`project ${id} is there and has no event`)
    if (deleted.has(id)) wrong.push(`project ${id} exists and has a deleted event`)
  }
  for (const id of created.keys())
    if (!there.has(id) && !deleted.has(id)) wrong.push(`project ${id} has a created event and does not exist`)

  const ended = Map.groupBy(
    events.filter(({ type, data }) => Object.values(ends).includes(type) && data.task),
    ({ data }) => data.task!.id,
  )
  for (const { id, status } of tasks) {
    const published = (ended.get(id) ?? []).map(({ type, data }) => `${type} ${data.task!.status}`)
    const expected = ends[status] ? [`${ends[status]} ${status}`] : []
    if (published.join() !== expected.join())
      wrong.push(`task ${id} is ${status} and has the events ${published.join(' and ') || 'nothing'}`)
  }
  return wrong
}
