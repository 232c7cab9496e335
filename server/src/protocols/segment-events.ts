import { isRest, type Hub, type TaskEvent } from '../events/streams/streams-hub.ts'
import { selectTaskEvents, type FreshTask } from '../events/streams/streams.ts'
import { finishReasonOf } from '../events/streams/finish-reasons.ts'
import { abortWith } from '../platform/abort-signals.ts'
import { Batcher } from '../platform/batcher.ts'
import type { Fragment, Sql } from '../platform/postgres/database.ts'
import type { Happening, SegmentFold, StepFacts } from './segment-fold.ts'

/** Maximum number of events that one read returns. */
const eventsMax = 500

/** Event types that need facts from the journal. */
const factual = new Set([
  ...['message.completed', 'tool.called', 'tool.completed', 'tool.failed'],
  ...['tool.requested', 'tool.resolved'],
])

/** Step events that need facts from the journal. */
const ofSteps = new Set(['step.started', 'step.completed', 'step.failed'])

export interface SegmentSource {
  sql: Sql
  hub: Hub
  task_id: string
  /** First event of the segment. */
  first_sequence: number
  /** First event of the next segment; null if there is none. */
  before_sequence: number | null
  /** Takes the events of a task that this process has just created. After the call the task is watched. */
  fresh?: FreshTask['take'] | undefined
  /** Reads events in batches with other readers of the process. */
  read?: ReadEvents
}

/** An event with its facts from the journal. */
interface KnownEvent {
  event: TaskEvent
  facts: StepFacts | undefined
}

/** A task, and the sequence number after which its events are read. */
interface AskedEvents {
  task_id: string
  after: number
}

/** Reads up to `eventsMax` events of a task after a sequence number, each with its facts. */
type ReadEvents = (asked: AskedEvents) => Promise<KnownEvent[]>

/** Maximum number of reads per statement, and of concurrent statements. */
const groupMax = 50
const concurrency = 2

/** Reads events in batches: tasks that change with one commit are read by one statement. */
export function makeReadEvents(sql: Sql): ReadEvents {
  const groups = new Batcher<AskedEvents, KnownEvent[]>((all) => readEvents(sql, all), { concurrency, groupMax })
  return (asked) => groups.submit(asked)
}

async function readEvents(sql: Sql, all: readonly AskedEvents[]): Promise<KnownEvent[][]> {
  const { fragment } = sql
  const ids = all.map(({ task_id }) => task_id)
  const after = all.map((asked) => asked.after)
  const events = selectTaskEvents(sql, fragment`asked.task_id`, fragment`asked.after`, eventsMax)
  const rows = await sql.run<TaskEvent & { nth: number; facts: StepFacts | null }>(fragment`
    select asked.nth::int, e.*, ${factsOf(sql, fragment`e`)} as facts
    from unnest(${ids}::text[], ${after}::int[]) with ordinality as asked(task_id, after, nth)
    cross join lateral (${events}) e order by asked.nth, e.sequence`)
  const found = all.map((): KnownEvent[] => [])
  for (const { nth, facts, ...event } of rows) found[nth - 1]!.push({ event, facts: facts ?? undefined })
  return found
}

/** SQL for the facts of an event `e` from the journal; null if the event needs none. */
function factsOf({ fragment }: Sql, e: Fragment): Fragment {
  return fragment`case when ${e}.type = any(${[...factual]}) or ${e}.type = any(${[...ofSteps]}) and ${e}.data->>'type' = 'wait' then (
    select jsonb_build_object('arguments', s.input->'arguments', 'output', s.output->>'content', 'error', s.error,
      'finish_reason', s.output->>'finish_reason', 'is_projects', s.input->'is_projects',
      'is_delegation', s.input ? 'child_task_id', 'question',
      case when s.type = 'wait' and s.name = 'request_input' and not s.input ? 'is_callers' then s.input->'arguments'->>'question' end,
      'approval_id', (select a.id from task_step l join approval a on a.task_id = l.task_id and a.step_id = l.id
        where l.task_id = s.task_id and l.type = 'approval' and l.input->>'tool_call_id' = s.input->>'tool_call_id'
          and (s.type = 'tool_call' or s.input ?| array['is_projects', 'child_task_id'])
        order by l.index desc limit 1))
    from task_step s where s.task_id = ${e}.task_id and s.id = ${e}.data->>'step_id')
    when ${e}.type = 'task.waiting' and ${e}.data->'wait'->>'reason' = 'tool' then jsonb_build_object('waits_for_caller', exists (
      select 1 from task_step s where s.task_id = ${e}.task_id and s.type = 'wait' and not s.input ? 'is_projects'
        and ${e}.data->'wait'->'tool_call_ids' ? ('call_' || substr(s.id, length('step_') + 1)))) end`
}

/** A published event with its facts; undefined if the journal must be read for them. */
function knownEvent(event: TaskEvent): KnownEvent | undefined {
  const { type, data } = event
  const finish_reason = finishReasonOf(event)
  if (finish_reason !== undefined) return { event, facts: { finish_reason } }
  const needsFacts =
    factual.has(type) || (ofSteps.has(type) && data['type'] === 'wait') || (type === 'task.waiting' && isForTool(data))
  return needsFacts ? undefined : { event, facts: undefined }
}

function isForTool({ wait }: TaskEvent['data']): boolean {
  return (wait as { reason?: unknown } | undefined)?.reason === 'tool'
}

/** Reads the events of a segment so far. */
export async function readSegment(
  source: Omit<SegmentSource, 'hub' | 'fresh' | 'read'>,
  fold: SegmentFold,
  take: (happenings: Happening[]) => void,
): Promise<number> {
  const { sql, task_id, first_sequence, before_sequence } = source
  let last = first_sequence - 1
  for (;;) {
    const [events = []] = await readEvents(sql, [{ task_id, after: last }])
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
 * Follows a segment until it has ended, `signal` aborts, or the process stops: first the stored events, then new
 * ones. With `text`, also the text that a model is writing; without it, events may be delivered only when the task
 * waits or ends. Holds no database connection while it waits. Resolves with whether the segment has ended; throws if
 * its task was deleted.
 */
export async function followSegment(
  source: SegmentSource,
  fold: SegmentFold,
  {
    signal,
    take,
    text = true,
  }: { signal: AbortSignal; take: (happenings: Happening[]) => void | Promise<void>; text?: boolean },
): Promise<boolean> {
  const { sql, hub, task_id, first_sequence, fresh } = source
  const read: ReadEvents = source.read ?? (async (asked) => (await readEvents(sql, [asked]))[0]!)
  let last = first_sequence - 1
  let wake = Promise.withResolvers<void>()
  /** Whether the database has unread events. Text is sent only in the order of events. */
  let behind = true
  /** Events that this process has published; used if they have no gap up to `tail`. */
  let published: TaskEvent[] = []
  let tail = last
  let isReading = false
  const closing = new AbortController()
  const unlink = abortWith(closing, signal)
  const over = closing.signal
  const look = (): void => {
    behind = true
    published = []
    wake.resolve()
  }
  const write = (): void => wake.resolve()
  const happened = (events: readonly TaskEvent[]): void => {
    if (behind) return
    if (isReading || (events[0]?.sequence ?? 0) > tail + 1) return look()
    published.push(...events.filter(({ sequence }) => sequence > tail))
    tail = published.at(-1)?.sequence ?? tail
    if (text || events.some(isRest)) wake.resolve()
  }
  over.addEventListener('abort', write)
  const unwatch = hub.watch(task_id, {
    seen: () => last,
    events: happened,
    look,
    close: () => closing.abort(),
    ...(text && { delta: write, message: write }),
  })
  /** Applies events in their order. Returns whether the segment has ended. */
  const takeAll = async (events: readonly KnownEvent[]): Promise<boolean> => {
    for (const { event, facts } of events) {
      await take(fold.event(event, facts))
      last = event.sequence
      if (event.type === 'message.completed' || event.type === 'message.discarded')
        hub.ended(task_id, String(event.data['message_id']))
      if (fold.ended || over.aborted) return true
    }
    return false
  }
  const readAll = async (): Promise<boolean> => {
    const before = last
    let events: KnownEvent[]
    do {
      events = await read({ task_id, after: last })
      if (await takeAll(events)) return true
    } while (events.length === eventsMax)
    if (last === before && !(await exists(sql, task_id))) throw new Error(`task ${task_id} was deleted`)
    return false
  }
  try {
    const past = fresh?.()
    if (past) {
      behind = false
      happened(past)
    }
    while (!over.aborted) {
      wake = Promise.withResolvers<void>()
      if (behind || published.length > 0) {
        const some = published
        published = []
        isReading = behind
        behind = false
        const known = some.flatMap((event) => knownEvent(event) ?? [])
        isReading ||= known.length < some.length
        const isOver = isReading ? await readAll() : await takeAll(known)
        if (isReading) tail = last
        isReading = false
        if (isOver) return fold.ended
      }
      const message = text ? hub.currentMessage(task_id) : undefined
      if (message && !behind && message.message_id === fold.writing)
        await take(fold.text(message.message_id, message.text))
      if (!behind && published.length === 0) await wake.promise
    }
    return false
  } finally {
    unwatch()
    unlink()
    over.removeEventListener('abort', write)
  }
}

async function exists(sql: Sql, task_id: string): Promise<boolean> {
  return (await sql`select 1 from task where id = ${task_id}`).length > 0
}
