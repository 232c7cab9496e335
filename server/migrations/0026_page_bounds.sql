-- runs-with: 0015
-- Identifiers of a period are told by the hour now, before by the day: so no page reads a day of tasks that are not in it.
-- How many tasks of a project, of one agent or (empty) of all, were created from `since` to before `until`, of one state or (null)
-- of all. Exact. Where one of the moments is finite, also identifiers between which all of them are. Tasks of agents that are removed count no more.
create or replace function count_tasks(project bigint, agent text, of_status text, since timestamptz, until timestamptz,
  out total bigint, out first_id text, out last_id text) language plpgsql stable set enable_seqscan = off as $$
declare
  open constant text[] := array['queued', 'running', 'waiting'];
  rolled timestamptz := coalesce((select s.rolled_until from task_total_state s), '-infinity');
  h_lo timestamptz := bucket_ceil(3600, since);
  h_hi timestamptz := greatest(h_lo, bucket_floor(3600, until));
  d_lo timestamptz := least(bucket_ceil(86400, h_lo), h_hi);
  d_hi timestamptz := greatest(bucket_floor(86400, h_hi), d_lo);
  gone text[] := '{}';
  edge record;
  n bigint;
  a text;
  z text;
begin
  total := 0;
  if agent = '' then
    gone := array(select r.agent_id from removed_agent r where exists (
      select from task t where t.agent_id = r.agent_id and t.project_id = project));
  end if;
  if of_status is null or not of_status = any(open) then
    -- Whole days and hours; of removed agents they are taken off again.
    select coalesce(sum(case when t.agent_id = agent then 1 else -1 end * case of_status when 'completed' then completed when 'failed' then failed
      when 'canceled' then canceled when 'expired' then expired else completed + failed + canceled + expired end), 0) into total
    from task_total t where t.project_id = project and t.agent_id = any(agent || gone)
      and (t.seconds = 86400 and t.bucket >= d_lo and t.bucket < d_hi
        or t.seconds = 3600 and (t.bucket >= h_lo and t.bucket < d_lo or t.bucket >= d_hi and t.bucket < h_hi));
    -- Parts of an hour at both ends.
    for edge in
      select t.first_id, t.last_id, e.lo, e.hi from (values (since, least(h_lo, until)), (h_hi, until)) as e(lo, hi)
        join task_total t on t.project_id = project and t.agent_id = agent and t.seconds = 3600 and t.bucket = bucket_floor(3600, e.lo)
      where e.lo < e.hi
    loop
      if agent = '' then
        select count(*) into n from task t where t.project_id = project and t.id >= edge.first_id and t.id <= edge.last_id
          and t.created_at >= edge.lo and t.created_at < edge.hi and t.finished_at < rolled
          and (of_status is null or t.status = of_status) and not t.agent_id = any(gone);
      else
        select count(*) into n from task t where t.agent_id = agent and t.id >= edge.first_id and t.id <= edge.last_id
          and t.created_at >= edge.lo and t.created_at < edge.hi and t.finished_at < rolled
          and (of_status is null or t.status = of_status);
      end if;
      total := total + n;
    end loop;
    if isfinite(since) or isfinite(until) then
      select min(t.first_id), max(t.last_id) into first_id, last_id from task_total t
      where t.project_id = project and t.agent_id = agent
        and (t.seconds = 86400 and t.bucket >= d_lo and t.bucket < d_hi
          or t.seconds = 3600 and (t.bucket >= bucket_floor(3600, since) and t.bucket < least(d_lo, until) or t.bucket >= d_hi and t.bucket < until));
    end if;
    -- Those that ended since.
    if agent = '' then
      select count(*), min(t.id), max(t.id) into n, a, z from task t where t.project_id = project and t.finished_at >= rolled
        and t.created_at >= since and t.created_at < until and (of_status is null or t.status = of_status) and not t.agent_id = any(gone);
    else
      select count(*), min(t.id), max(t.id) into n, a, z from task t where t.agent_id = agent and t.finished_at >= rolled
        and t.created_at >= since and t.created_at < until and (of_status is null or t.status = of_status);
    end if;
    total := total + n;
    first_id := least(first_id, a);
    last_id := greatest(last_id, z);
  end if;
  if of_status is null or of_status = any(open) then
    if agent = '' then
      select count(*), min(t.id), max(t.id) into n, a, z from task t where t.project_id = project and t.status = any(open)
        and t.created_at >= since and t.created_at < until and (of_status is null or t.status = of_status) and not t.agent_id = any(gone);
    else
      select count(*), min(t.id), max(t.id) into n, a, z from task t where t.agent_id = agent and t.status = any(open)
        and t.created_at >= since and t.created_at < until and (of_status is null or t.status = of_status);
    end if;
    total := total + n;
    first_id := least(first_id, a);
    last_id := greatest(last_id, z);
  end if;
end $$;

-- What `task_rollups` gives, without the sketches of durations: they are most of it, and a series needs none.
create function task_series(agent text, lo timestamptz, hi timestamptz, largest int)
returns table (bucket timestamptz, completed bigint, timed bigint, microseconds bigint) language plpgsql stable rows 2000 as $$
declare
  h_lo timestamptz := case when largest < 3600 then hi else least(bucket_ceil(3600, lo), hi) end;
  h_hi timestamptz := case when largest < 3600 then hi else greatest(bucket_floor(3600, hi), h_lo) end;
  d_lo timestamptz := case when largest < 86400 then h_hi else least(bucket_ceil(86400, h_lo), h_hi) end;
  d_hi timestamptz := case when largest < 86400 then h_hi else greatest(bucket_floor(86400, h_hi), d_lo) end;
begin
  return query
    select r.bucket, r.completed, r.timed, r.microseconds from task_rollup r where r.agent_id = agent and (
      r.seconds = 60 and r.bucket >= lo and r.bucket < h_lo
      or r.seconds = 60 and r.bucket >= h_hi and r.bucket < hi
      or r.seconds = 3600 and r.bucket >= h_lo and r.bucket < d_lo
      or r.seconds = 3600 and r.bucket >= d_hi and r.bucket < h_hi
      or r.seconds = 86400 and r.bucket >= d_lo and r.bucket < d_hi);
end $$;
