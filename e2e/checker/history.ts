import type { Sql } from '../../server/src/platform/postgres/database.ts'
import { eventually } from '../../server/test/harness.ts'
import type { JournaledCall } from '../../server/test/history/check-effects.ts'
import type { Move } from '../../server/test/history/check-moves.ts'
import type { SeenEvent, Watch } from '../../server/test/history/check-sequences.ts'
import type { FoundTask } from '../../server/test/history/check-set.ts'
import type { Load } from '../workload/load.ts'

/**
 * Writes down every change of a status in the database itself, so that no move between two looks is missed. To be run
 * on a migrated database before anything happens.
 */
export const recordMoves = `
  create table status_move (id bigint generated always as identity primary key, of text not null, key text not null, "from" text, "to" text not null);
  create function record_move() returns trigger language plpgsql as $$
  begin
    if tg_op = 'INSERT' then
      insert into status_move (of, key, "from", "to") values (tg_table_name, new.id, null, new.status);
    elsif old.status <> new.status then
      insert into status_move (of, key, "from", "to") values (tg_table_name, new.id, old.status, new.status);
    end if;
    return null;
  end $$;
  create trigger record_move after insert or update of status on task for each row execute function record_move();
  create trigger record_move after insert or update of status on agent for each row execute function record_move();`

export async function readMoves(sql: Sql, of: 'task' | 'agent'): Promise<Move[]> {
  return sql<Move>`select key, "from", "to" from status_move where of = ${of} order by id`
}

/** Which tasks must wait for each other, by thread and by key. */
export async function readTurns(sql: Sql): Promise<Map<string, string[]>> {
  const rows = await sql<{ id: string; turns: string[] }>`
    select id, array_remove(array['thread ' || thread_id, 'key ' || concurrency_key], null) as turns from task
    where thread_id is not null or concurrency_key is not null`
  return new Map(rows.map(({ id, turns }) => [id, turns]))
}

/** All tasks of the project as its API lists them. */
export async function listTasks({ ask }: Load): Promise<FoundTask[]> {
  const found: FoundTask[] = []
  for (let total = 1; found.length < total;) {
    const { body } = await ask('GET', `/tasks?sort=created_at&limit=100&offset=${found.length}`)
    const { tasks, pagination } = body as {
      tasks: (FoundTask & { metadata: { marker: string } })[]
      pagination: { total: number }
    }
    if (tasks.length === 0) break
    found.push(...tasks.map(({ id, status, metadata }) => ({ id, status, key: metadata.marker })))
    total = pagination.total
  }
  return found
}

/** Every task's events as its API lists them: one more watcher of each, who comes after the end. */
export async function listEvents({ ask }: Load, tasks: readonly FoundTask[]): Promise<Watch[]> {
  const watches: Watch[] = []
  const left = [...tasks]
  const read = async (): Promise<void> => {
    for (let task = left.pop(); task; task = left.pop()) {
      const { body } = await ask('GET', `/tasks/${task.id}/events?limit=1000`)
      const events = (body.events as SeenEvent[]).map(({ sequence, type, data }) => ({ sequence, type, data }))
      watches.push({ watcher: 'the list', task_id: task.id, events })
    }
  }
  await Promise.all(Array.from({ length: 8 }, read))
  return watches
}

/** What the journals say of every call of the observer's tools. */
export async function journaledCalls(sql: Sql): Promise<JournaledCall[]> {
  return sql<JournaledCall>`
    select s.input->'arguments'->>'call' as call,
      s.status = 'completed' and not exists (select from approval a where a.step_id = s.id and a.result is not null) as "wasAnswered",
      (select count(*) from approval a
        where a.step_id = s.id and a.kind = 'recovery' and a.status = 'approved' and a.result is null)::int as "repeatsApproved"
    from task_step s where s.type = 'tool_call' and s.input->'arguments' ? 'call'`
}

/** Tasks that failed with an internal error: kills do not excuse one. */
export async function internalErrors(sql: Sql): Promise<string[]> {
  const rows = await sql<{ id: string }>`select id from task where error->>'code' = 'internal_error'`
  return rows.map(({ id }) => `task ${id} failed internally`)
}

/** Longer than any wait between two tries of a task here. */
const forgotten_ms = 60_000

/**
 * What must be gone when all is quiet: jobs of finished tasks, and approvals that need no answer. The job of a task
 * that ends while it waits for a time is left to the worker that fetches it then, so such a time is waited for.
 */
export async function leftovers(sql: Sql): Promise<string[]> {
  const count = async (): Promise<number> => {
    const [row] = await sql<{ n: number }>`select count(*)::int as n from pgboss.job where name = 'task'`
    return row!.n
  }
  await eventually(async () => (await count()) === 0, forgotten_ms).catch(() => {})
  const jobs = await sql<{ what: string }>`
    select concat('job ', j.id, ' of a task that is ', coalesce(t.status, 'gone'), ' is ', j.state, ' from ', j.start_after) as what
    from pgboss.job j left join task t on t.id = j.data->>'task_id' where j.name = 'task' limit 20`
  const [row] = await sql<{ approvals: number; held: number }>`
    select (select count(*) from approval where status = 'pending')::int as approvals,
      (select count(*) from task where worker_id is not null or job_id is not null)::int as held`
  return [
    ...jobs.map(({ what }) => `${what}: it is left`),
    ...Object.entries(row!).flatMap(([name, number]) => (number > 0 ? [`${number} ${name} are left`] : [])),
  ]
}
