import type { Hub, TaskEvent } from '../events/streams/streams-hub.ts'
import { listTaskEvents } from '../events/streams/streams.ts'
import type { Sql } from '../platform/postgres/database.ts'
import type { Happening, SegmentFold, StepFacts } from './segment-fold.ts'

/** Events read from the database at once. */
const eventsMax = 500

/** Events whose facts are in the journal. */
const factual = new Set(['message.completed', 'tool.called', 'tool.completed', 'tool.failed', 'tool.requested'])

export interface SegmentSource {
  sql: Sql
  hub: Hub
  task_id: string
  /** Where reading begins: events before it are of earlier segments. */
  first_sequence: number
  /** The first event of the next segment, where there is one. */
  before_sequence: number | null
}

/** The events of a task after a sequence, each with its facts. */
async function readEvents(
  sql: Sql,
  task_id: string,
  after: number,
): Promise<{ event: TaskEvent; facts: StepFacts | undefined }[]> {
  const events = await listTaskEvents(sql, task_id, { after, limit: eventsMax })
  const ids = events.filter(needsFacts).map(({ data }) => String(data['step_id']))
  const facts = ids.length === 0 ? new Map<string, StepFacts>() : await readFacts(sql, task_id, [...new Set(ids)])
  return events.map((event) => ({
    event,
    facts: needsFacts(event) ? facts.get(String(event.data['step_id'])) : undefined,
  }))
}

function needsFacts({ type, data }: TaskEvent): boolean {
  return factual.has(type) || (type === 'step.started' && data['type'] === 'wait')
}

async function readFacts(sql: Sql, task_id: string, step_ids: readonly string[]): Promise<Map<string, StepFacts>> {
  const rows = await sql<StepFacts & { id: string }>`
    select s.id, s.input->'arguments' as arguments, s.output->>'content' as output, s.error, s.output->>'finish_reason' as finish_reason,
      case when s.type = 'wait' and s.name = 'request_input' and not s.input ? 'is_callers' then s.input->'arguments'->>'question' end as question,
      (select a.id from task_step l join approval a on a.task_id = l.task_id and a.step_id = l.id
        where l.task_id = s.task_id and l.type = 'approval' and l.input->>'tool_call_id' = s.input->>'tool_call_id' and s.type = 'tool_call'
        order by l.index desc limit 1) as approval_id
    from task_step s where s.task_id = ${task_id} and s.id = any(${[...step_ids]})`
  return new Map(rows.map(({ id, ...facts }) => [id, facts]))
}

/** Reads what has happened in a segment so far, to its end where it has ended. */
export async function readSegment(
  source: Omit<SegmentSource, 'hub'>,
  fold: SegmentFold,
  take: (happenings: Happening[]) => void,
): Promise<number> {
  const { sql, task_id, first_sequence, before_sequence } = source
  let last = first_sequence - 1
  for (;;) {
    const events = await readEvents(sql, task_id, last)
    for (const { event, facts } of events) {
      if (before_sequence !== null && event.sequence >= before_sequence) return last
      take(fold.event(event, facts))
      last = event.sequence
      if (fold.ended) return last
    }
    if (events.length < eventsMax) return last
  }
}

/**
 * Follows a segment until it has ended, `signal` aborts, or the process stops: everything that is in the journal, and then
 * what happens, with the text that a model is writing. Holds no connection of the database while it waits. Resolves with
 * whether the segment has ended; throws where its task is gone.
 */
export async function followSegment(
  source: SegmentSource,
  fold: SegmentFold,
  { signal, take }: { signal: AbortSignal; take: (happenings: Happening[]) => void | Promise<void> },
): Promise<boolean> {
  const { sql, hub, task_id, first_sequence } = source
  let last = first_sequence - 1
  let wake = Promise.withResolvers<void>()
  /** Events have happened that were not read yet: text is only told in their order. */
  let behind = true
  const closing = new AbortController()
  const over = AbortSignal.any([signal, closing.signal])
  const look = (): void => {
    behind = true
    wake.resolve()
  }
  const write = (): void => wake.resolve()
  over.addEventListener('abort', write)
  const unwatch = hub.watch(task_id, {
    seen: () => last,
    events: look,
    look,
    delta: write,
    message: write,
    close: () => closing.abort(),
  })
  try {
    while (!over.aborted) {
      wake = Promise.withResolvers<void>()
      if (behind) {
        behind = false
        const before = last
        let events: Awaited<ReturnType<typeof readEvents>>
        do {
          events = await readEvents(sql, task_id, last)
          for (const { event, facts } of events) {
            await take(fold.event(event, facts))
            last = event.sequence
            if (event.type === 'message.completed' || event.type === 'message.discarded')
              hub.ended(task_id, String(event.data['message_id']))
            if (fold.ended) return true
            if (over.aborted) return false
          }
        } while (events.length === eventsMax)
        if (last === before && !(await exists(sql, task_id))) throw new Error(`task ${task_id} is gone`)
      }
      const message = hub.currentMessage(task_id)
      if (message && !behind && message.message_id === fold.writing)
        await take(fold.text(message.message_id, message.text))
      if (!behind) await wake.promise
    }
    return false
  } finally {
    unwatch()
    over.removeEventListener('abort', write)
  }
}

async function exists(sql: Sql, task_id: string): Promise<boolean> {
  return (await sql`select 1 from task where id = ${task_id}`).length > 0
}
