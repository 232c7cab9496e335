import type { Fragment, Sql } from '../../platform/postgres/database.ts'
import { jsonb } from '../../platform/postgres/database.ts'
import { newId } from '../../platform/ids.ts'

/**
 * Copies the beginning of a finished task's journal to a new task that retries it (`retry_of`), in the transaction that
 * creates the new task: the steps before `from_step`, and the messages that were read before it. Copied steps are not
 * repeated and do not count in the new task's usage.
 *
 * Steps before `from_step` without a result and without an effect are left out: a model call without an answer, an open
 * wait, a pending approval, and an approval whose call is made again, because an approval permits one call only. A tool
 * call of unknown outcome is copied. A person is asked about it unless the tool is safe, because the call's key is no
 * longer the same. The copied steps are renumbered without gaps.
 */
export async function copyJournal(tx: Sql, from_task: string, to_task: string, from_step: number): Promise<void> {
  await tx`
    update task_event set data = data || ${jsonb({ retried_from: from_task, from_step })}::jsonb
    where task_id = ${to_task} and sequence = 1`
  const stored = await storedSteps(tx, from_task, from_step)
  await copySteps(tx, from_task, to_task, stored)
  await copyMessages(tx, { from_task, to_task, from_step, stored })
}

/** The indexes of the steps to copy, in order. */
async function storedSteps(tx: Sql, from_task: string, from_step: number): Promise<number[]> {
  const rows = await tx<{ index: number }>`
    with started as (
      select index, type, status, input->>'tool_call_id' as call,
        max(index) filter (where type = 'model_call') over (order by index) as turn
      from task_step where task_id = ${from_task} and index < ${from_step}
    )
    select index from started b
    where case type
      when 'model_call' then status = 'completed'
      when 'wait' then status <> 'started'
      when 'compaction' then status = 'completed'
      when 'approval' then status = 'failed' or status = 'completed'
        and exists (select from started c where c.turn = b.turn and c.call = b.call
          and (c.type = 'tool_call' or c.type = 'wait' and c.status <> 'started'))
      else true end
    order by index`
  return rows.map(({ index }) => index)
}

async function copySteps(tx: Sql, from_task: string, to_task: string, stored: readonly number[]): Promise<void> {
  if (stored.length === 0) return
  const ids = stored.map(() => newId('step'))
  await tx`
    insert into task_step (task_id, index, id, agent_id, type, status, attempt, failures, name, input, output, error, model, usage, turn,
      started_at, finished_at)
    select ${to_task}, k.place - 1, k.id, s.agent_id, s.type, case when s.status = 'unknown' then 'started' else s.status end,
      s.attempt, 0, s.name,
      case when s.status in ('started', 'unknown') and s.input->>'safety' is distinct from 'safe'
        then s.input - 'repeat' - 'approval_id' || '{"safety": "unsafe"}' else ${moved(tx, 'input', 'results_left_out_before', stored)} end,
      ${moved(tx, 'output', 'before_step', stored)}, s.error, s.model, null, s.turn, s.started_at, s.finished_at
    from unnest(${[...stored]}::int[], ${ids}::text[]) with ordinality as k(index, id, place)
    join task_step s on s.task_id = ${from_task} and s.index = k.index`
}

/** The JSON of a step's column, with the step index in `member` renumbered for the new journal. */
function moved({ fragment }: Sql, column: 'input' | 'output', member: string, stored: readonly number[]): Fragment {
  const of = column === 'input' ? fragment`s.input` : fragment`s.output`
  return fragment`case when jsonb_typeof(${of}->${member}) = 'number' and s.type in ('model_call', 'compaction') then jsonb_set(${of}, array[${member}]::text[],
        to_jsonb((select count(*) from unnest(${[...stored]}::int[]) i(index) where i.index < (${of}->>${member})::int))) else ${of} end`
}

async function copyMessages(
  tx: Sql,
  {
    from_task,
    to_task,
    from_step,
    stored,
  }: { from_task: string; to_task: string; from_step: number; stored: number[] },
): Promise<void> {
  const messages = await tx<{ position: number }>`
    select position from task_message where task_id = ${from_task} and before_step <= ${from_step} order by position`
  if (messages.length === 0) return
  const positions = messages.map(({ position }) => position)
  await tx`
    insert into task_message (task_id, position, id, content, parts, before_step, created_by, created_at)
    select ${to_task}, k.place, k.id, m.content, m.parts,
      (select count(*) from unnest(${stored}::int[]) s(index) where s.index < m.before_step), m.created_by, m.created_at
    from unnest(${positions}::int[], ${positions.map(() => newId('msg'))}::text[]) with ordinality as k(position, id, place)
    join task_message m on m.task_id = ${from_task} and m.position = k.position`
}
