-- runs-with: 0015
-- An agent's tasks that ended from `since` to before `until`. By the index, whatever the planner makes of a moment that it does
-- not know: it would take a third of all tasks for it, and read the whole table.
create function ended_tasks(agent text, since timestamptz, until timestamptz)
returns table (status text, created_at timestamptz, started_at timestamptz, finished_at timestamptz)
language plpgsql stable rows 100 set enable_seqscan = off as $$
begin
  return query
    select t.status, t.created_at, t.started_at, t.finished_at from task t
    where t.agent_id = agent and t.finished_at >= since and t.finished_at < until;
end $$;
