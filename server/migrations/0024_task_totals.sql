-- runs-with: 0015
-- Ended tasks by the hour and the day (UTC) in which they were created, of each agent and, under an empty agent, of each project:
-- so that the total of a list of tasks takes no longer with five million than with five thousand. Added up by the maintenance;
-- those that ended since, and those that are open, are counted themselves, in the same statement.
create table task_total (
  project_id bigint not null,
  agent_id identifier not null,
  seconds int not null check (seconds in (3600, 86400)),
  bucket timestamptz not null,
  completed bigint not null,
  failed bigint not null,
  canceled bigint not null,
  expired bigint not null,
  -- No task of them has an identifier outside of these, whatever the clock said that made it.
  first_id identifier not null,
  last_id identifier not null,
  primary key (project_id, agent_id, seconds, bucket)
);
create index task_total_agent on task_total (agent_id) where agent_id <> '';

-- Up to which end of theirs tasks are added up, exclusive and on a full minute. Whoever removes tasks shares its lock, so that each
-- of them is taken off if, and only if, it was added.
create table task_total_state (
  only_one boolean primary key default true check (only_one),
  rolled_until timestamptz not null
);
insert into task_total_state (rolled_until) values ('-infinity');

-- Adds tasks that have ended, or takes them off: `amounts` has one row for each project, agent, hour and state.
create function add_task_totals(amounts jsonb) returns void language sql as $$
  insert into task_total as t
  select project_id, of_agent, of_seconds, bucket_floor(of_seconds, hour), coalesce(sum(n) filter (where status = 'completed'), 0),
    coalesce(sum(n) filter (where status = 'failed'), 0), coalesce(sum(n) filter (where status = 'canceled'), 0),
    coalesce(sum(n) filter (where status = 'expired'), 0), min(first_id), max(last_id)
  from jsonb_to_recordset(amounts) as a(project_id bigint, agent_id text, hour timestamptz, status text, n bigint, first_id text collate "C", last_id text collate "C"),
    unnest(array[agent_id, '']) of_agent, unnest(array[3600, 86400]) of_seconds
  group by 1, 2, 3, 4 order by 1, 2, 3, 4
  on conflict (project_id, agent_id, seconds, bucket) do update set completed = t.completed + excluded.completed,
    failed = t.failed + excluded.failed, canceled = t.canceled + excluded.canceled, expired = t.expired + excluded.expired,
    first_id = least(t.first_id, excluded.first_id), last_id = greatest(t.last_id, excluded.last_id)
$$;

create function take_off_task_totals() returns trigger language plpgsql as $$
declare
  done timestamptz;
  amounts jsonb;
begin
  select rolled_until into done from task_total_state for share;
  select jsonb_agg(to_jsonb(a)) into amounts from (
    select project_id, agent_id, bucket_floor(3600, created_at) as hour, status, -count(*) as n, min(id) as first_id, max(id) as last_id
    from gone where finished_at < done group by 1, 2, 3, 4
  ) a;
  if amounts is not null then
    perform add_task_totals(amounts);
    delete from task_total t using (
      select distinct (a->>'project_id')::bigint as project_id, of_agent, of_seconds, bucket_floor(of_seconds, (a->>'hour')::timestamptz) as bucket
      from jsonb_array_elements(amounts) a, unnest(array[a->>'agent_id', '']) of_agent, unnest(array[3600, 86400]) of_seconds
    ) touched
    where t.project_id = touched.project_id and t.agent_id = of_agent and t.seconds = of_seconds and t.bucket = touched.bucket
      and completed = 0 and failed = 0 and canceled = 0 and expired = 0;
  end if;
  return null;
end $$;
create trigger task_gone after delete on task referencing old table as gone
  for each statement execute function take_off_task_totals();

-- Adds up the next tasks, those of ten minutes at most, and tells whether there is more to do. Only of minutes in which no
-- task can end any more, as `roll_up_tasks` does.
create function roll_up_task_totals() returns boolean language plpgsql as $$
declare
  done timestamptz;
  next timestamptz;
  horizon timestamptz;
  reached timestamptz;
  amounts jsonb;
begin
  if not pg_try_advisory_xact_lock(hashtext('cadre task totals')) then return false; end if;
  select rolled_until into done from task_total_state for update;
  select finished_at into next from task where finished_at >= done order by finished_at limit 1;
  if next is null and not isfinite(done) then return false; end if;
  select bucket_floor(60, least(clock_timestamp() - interval '1 minute', min(xact_start))) into horizon
  from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid();
  reached := least(horizon, coalesce(greatest(bucket_floor(60, next), done) + interval '10 minutes', 'infinity'));
  if reached <= done then return false; end if;
  select jsonb_agg(to_jsonb(a)) into amounts from (
    select project_id, agent_id, bucket_floor(3600, created_at) as hour, status, count(*) as n, min(id) as first_id, max(id) as last_id
    from task where finished_at >= done and finished_at < reached group by 1, 2, 3, 4
  ) a;
  if amounts is not null then perform add_task_totals(amounts); end if;
  update task_total_state set rolled_until = reached;
  return reached < horizon;
end $$;

-- How many tasks of a project, of one agent or (empty) of all, were created from `since` to before `until`, of one state or (null)
-- of all. Exact. Where one of the moments is finite, also identifiers between which all of them are. Tasks of agents that are removed count no more.
create function count_tasks(project bigint, agent text, of_status text, since timestamptz, until timestamptz,
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
      where t.project_id = project and t.agent_id = agent and t.seconds = 86400
        and t.bucket >= bucket_floor(86400, since) and t.bucket < until;
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
