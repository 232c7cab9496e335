import type { ModelToolCall } from '../../engine/models/model.ts'
import { workersAnswer } from '../../engine/conversation/thread-history.ts'
import type { Fragment, Sql } from '../../platform/postgres/database.ts'

/** A message of a thread in a response. */
export interface ThreadMessageRow {
  id: string
  role: 'system' | 'user' | 'assistant' | 'tool'
  content: string
  tool_calls: ModelToolCall[] | null
  tool_call_id: string | null
  task_id: string
  created_at: string
}

/** Turn of an answer that is not in a step; it sorts after all steps. */
const answerTurn = 2_147_483_647

/**
 * SQL for the positions of a thread's messages. Each message is stored once: in the input of a task, in a step of its
 * journal, or as a message that was sent to it. `turn` is the step before which it belongs, `place` its position
 * among those.
 */
const places = (sql: Sql, thread_id: string): Fragment => sql.fragment`
  select t.thread_position, -1 as turn, i as place, 'input' as kind, t.id as task_id
  from task t, generate_series(0, case jsonb_typeof(t.input) when 'array' then jsonb_array_length(t.input) else 1 end - 1) i
  where t.thread_id = ${thread_id}
  union all
  select t.thread_position, m.before_step, m.position - 1000000, 'message', t.id
  from task t join task_message m on m.task_id = t.id
  where t.thread_id = ${thread_id}
  union all
  select t.thread_position, s.index, 0, 'step', t.id
  from task t join task_step s on s.task_id = t.id
  where t.thread_id = ${thread_id} and case s.type when 'model_call' then s.status = 'completed' and not coalesce(s.input ? 'is_workers', false)
    -- Of an approval that was given the result is that of the call which follows.
    else s.output is not null and s.type <> 'compaction' and not (s.type = 'approval' and s.status = 'completed') end
  union all
  select t.thread_position, ${answerTurn}, 0, 'answer', t.id
  from task t
  where t.thread_id = ${thread_id} and ${workersAnswer(sql)} is not null`

/**
 * A page of a thread's messages in the order of its tasks, and their total number. Messages that a task has not read
 * yet come last within it. Messages without an id get a stable one that is derived from the task.
 */
export async function listThreadMessages(
  sql: Sql,
  thread_id: string,
  { limit, offset }: { limit: number; offset: number },
): Promise<{ messages: ThreadMessageRow[]; total: number }> {
  const { fragment } = sql
  const [count] = await sql.run<{ total: number }>(
    fragment`select count(*) as total from (${places(sql, thread_id)}) p`,
  )
  const messages = await sql.run<ThreadMessageRow>(fragment`
    with page as (
      select * from (${places(sql, thread_id)}) p
      order by thread_position, turn nulls last, place limit ${limit} offset ${offset}
    )
    select m.id, m.role, m.content, m.tool_calls, m.tool_call_id, p.task_id, m.created_at
    from page p cross join lateral (
      select ${madeId(sql, fragment`t.id || ':input:' || p.place`)} as id,
        case jsonb_typeof(t.input) when 'array' then t.input->p.place->>'role' else 'user' end as role,
        ${inputText(sql)} as content,
        null::jsonb as tool_calls, null as tool_call_id, t.created_at
      from task t where t.id = p.task_id and p.kind = 'input'
      union all
      select m.id, 'user', m.content, null, null, m.created_at
      from task_message m where m.task_id = p.task_id and m.position = p.place + 1000000 and p.kind = 'message'
      union all
      select coalesce(s.output->>'message_id', ${madeId(sql, fragment`s.task_id || ':step:' || s.index`)}),
        case s.type when 'model_call' then 'assistant' else 'tool' end,
        coalesce(s.output->>case s.type when 'model_call' then 'text' else 'content' end, ''),
        case when jsonb_array_length(s.output->'tool_calls') > 0 then s.output->'tool_calls' end,
        s.input->>'tool_call_id', coalesce(s.finished_at, s.started_at)
      from task_step s where s.task_id = p.task_id and s.index = p.turn and p.kind = 'step'
      union all
      select ${madeId(sql, fragment`t.id || ':answer'`)}, 'assistant', t.output ->> 'content', null, null, t.finished_at
      from task t where t.id = p.task_id and p.kind = 'answer'
    ) m
    order by p.thread_position, p.turn nulls last, p.place`)
  return { messages, total: count?.total ?? 0 }
}

/** SQL for the text of an input message: the texts of its parts with file marks, or an object as JSON. */
function inputText({ fragment }: Sql): Fragment {
  return fragment`case when jsonb_typeof(t.input) <> 'array' then t.input#>>'{}'
          when jsonb_typeof(t.input->p.place->'content') = 'string' then t.input->p.place->>'content'
          else (select string_agg(coalesce(part->>'text', '[' || (part->>'type') || ' ' || (part->>'file_id') || ']'), e'\n\n')
            from jsonb_array_elements(t.input->p.place->'content') part) end`
}

/** SQL for a stable message id: the time of the task's id, and a hash of the position. */
function madeId({ fragment }: Sql, where: Fragment): Fragment {
  return fragment`'msg_' || substr(p.task_id, 6, 10) || substr(md5(${where}), 1, 16)`
}
