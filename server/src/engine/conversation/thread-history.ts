import type { Fragment, Sql } from '../../platform/postgres/database.ts'
import type { TaskInput } from '#contract/tasks/tasks.ts'
import { conversation, lastCompaction } from './conversation.ts'
import type { StoredMessage } from './turns.ts'
import type { Step, ReadMessage } from '../task.ts'

/** Maximum size of a thread's history in a task's conversation; older tasks are left out as a whole. */
export const historyMax = { messages: 1000, bytes: 1024 * 1024 }

/** Maximum depth of forks of threads. */
const forksMax = 100

interface PastTask {
  input: TaskInput
  steps: Step[]
  messages: ReadMessage[]
  /** The answer of its remote worker. */
  answer: string | null
}

/**
 * SQL expression: the answer that a remote worker gave to the ended task `t`, if no model call through the service made
 * it; else null.
 */
export function workersAnswer({ fragment }: Sql): Fragment {
  return fragment`case when t.status = 'completed' and t.output ->> 'content' <> '' and exists (select from work w where w.task_id = t.id)
      and t.output ->> 'content' is distinct from (select output ->> 'text' from task_step
        where task_id = t.id and type = 'model_call' and status = 'completed' and not coalesce(input ? 'is_workers', false) order by index desc limit 1)
    then t.output ->> 'content' end`
}

/**
 * The messages of the earlier tasks of a task's thread, oldest first: their inputs, messages to them, completed
 * answers, tool calls and results; empty for a task without a thread. A task that was retried in the thread is left
 * out, because its retry replaces it. Providers require a result for every call, so calls without one are left out.
 *
 * All earlier tasks of the thread have ended when a task starts, so the history is the same at every attempt.
 * `historyMax` bounds it, newest tasks first. The stored size bounds what is read, so a long thread costs no more.
 */
export async function threadHistory(
  sql: Sql,
  { id, thread_id }: { id: string; thread_id: string | null },
): Promise<StoredMessage[]> {
  if (thread_id === null) return []
  const past = await sql.run<PastTask>(sql.fragment`
    with recursive line as (
      select thread_id, thread_position - 1 as upto, 0 as depth from task where id = ${id}
      union all
      -- A fork continues another thread from a position in its middle.
      select h.parent_thread_id, h.parent_position, l.depth + 1 from line l join thread h on h.id = l.thread_id
      where h.parent_thread_id is not null and l.depth < ${forksMax}
    ),
    earlier as materialized (
      select t.id, l.depth, t.thread_position, pg_column_size(t.input) + coalesce(s.bytes, 0) as bytes
      from line l join task t on t.thread_id = l.thread_id and t.thread_position <= l.upto,
        lateral (select sum(coalesce(pg_column_size(output), 0) + coalesce(pg_column_size(turn), 0)) as bytes from task_step where task_id = t.id) s
      where t.finished_at is not null
        and not exists (select from task r where r.thread_id = t.thread_id and r.retried_from = t.id
          and r.thread_position between t.thread_position and l.upto)
      order by l.depth, t.thread_position desc limit ${historyMax.messages}
    ), newest as (
      select *, sum(bytes) over (order by depth, thread_position desc) as total from earlier
    )
    select t.input, ${workersAnswer(sql)} as answer,
      (select coalesce(jsonb_agg(to_jsonb(s) order by s.index), '[]')
        from (select index, type, status, name, input, output, encode(turn, 'base64') as turn from task_step where task_id = t.id) s) as steps,
      (select coalesce(jsonb_agg(to_jsonb(m) order by m.position), '[]')
        from (select position, content, parts, before_step from task_message where task_id = t.id and before_step is not null) m) as messages
    from newest n join task t on t.id = n.id
    where n.total - n.bytes <= ${historyMax.bytes} order by n.depth, n.thread_position desc`)
  return newestWithin(past).reduce<StoredMessage[]>((history, task) => saidIn(task, history), [])
}

/** The messages of a task, after the history before it. */
function saidIn({ answer, ...task }: PastTask, history: StoredMessage[] = []): StoredMessage[] {
  const all = conversation({ history, ...task })
  return wellFormed(answer === null ? all : [...all, { role: 'assistant', content: answer }])
}

/**
 * The newest tasks that fit the bounds as a whole, oldest first. A task whose compaction summarized everything before
 * it replaces the earlier ones.
 */
function newestWithin(tasks: readonly PastTask[]): PastTask[] {
  const taken: PastTask[] = []
  let [messages, bytes] = [0, 0]
  for (const task of tasks) {
    const said = saidIn(task)
    messages += said.length
    bytes += Buffer.byteLength(JSON.stringify(said))
    if (messages > historyMax.messages || bytes > historyMax.bytes) break
    taken.unshift(task)
    if ((lastCompaction(task.steps)?.before_step ?? 0) > 0) break
  }
  return taken
}

/** A conversation in which every call has its result. An answer without any remaining content is left out. */
function wellFormed(messages: readonly StoredMessage[]): StoredMessage[] {
  const answered = new Set(messages.flatMap(({ tool_call_id }) => tool_call_id ?? []))
  return messages.flatMap((message): StoredMessage[] => {
    const { tool_calls, ...rest } = message
    if (!tool_calls) return message.role === 'assistant' && message.content === '' ? [] : [message]
    const calls = tool_calls.filter(({ id }) => answered.has(id))
    if (calls.length > 0) return [{ ...rest, tool_calls: calls }]
    return rest.content === '' ? [] : [rest]
  })
}
