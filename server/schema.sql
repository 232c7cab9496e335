-- The schema after all migrations, for reading and for reviews: made by `npm run gen`, never run and never edited.
-- Changes are made by a new file in server/migrations. Partitions by time are left out: ensure_partitions() makes them.

set check_function_bodies to off;

create schema trigrams;
create extension pg_trgm schema trigrams;

create domain identifier as text collate "C";

CREATE OR REPLACE FUNCTION public.id_floor(prefix text, at timestamp with time zone)
 RETURNS text
 LANGUAGE plpgsql
 IMMUTABLE
AS $function$
declare
  rest bigint := floor(extract(epoch from at) * 1000)::bigint;
  digits text := '';
begin
  for i in 1..10 loop
    digits := substr('0123456789abcdefghjkmnpqrstvwxyz', (rest % 32)::int + 1, 1) || digits;
    rest := rest / 32;
  end loop;
  return prefix || '_' || digits || '0000000000000000';
end $function$;

CREATE OR REPLACE FUNCTION public.ensure_partitions(days integer)
 RETURNS void
 LANGUAGE plpgsql
 SET "TimeZone" TO 'UTC'
AS $function$
declare
  at timestamptz;
  months constant text[][] := array[
    ['task_step', 'task'], ['task_event', 'task'], ['event', 'evt'], ['delivery', 'dlv'], ['delivery_attempt', 'dlv']];
  name text;
  i int;
begin
  perform pg_advisory_xact_lock(hashtext('cadre partitions'));
  for at in select generate_series(date_trunc('day', now() - interval '1 day', 'UTC'), now() + make_interval(days => days), '1 day') loop
    name := 'agent_log_' || to_char(at at time zone 'UTC', 'YYYYMMDD');
    if to_regclass(name) is null then
      execute format('create table %I partition of agent_log for values from (%L) to (%L)', name, at, at + interval '1 day');
    end if;
  end loop;
  for at in select generate_series(date_trunc('month', now() - interval '1 day', 'UTC'), now() + make_interval(days => days), '1 month') loop
    for i in 1..array_length(months, 1) loop
      name := months[i][1] || '_' || to_char(at at time zone 'UTC', 'YYYYMM');
      if to_regclass(name) is null then
        execute format('create table %I partition of %I for values from (%L) to (%L)', name, months[i][1],
          id_floor(months[i][2], at), id_floor(months[i][2], at + interval '1 month'));
      end if;
    end loop;
  end loop;
end $function$;

CREATE OR REPLACE FUNCTION public.build_index(of regclass, name text, definition text)
 RETURNS void
 LANGUAGE plpgsql
AS $function$
declare
  rows_at_once constant int := 50000;
  large boolean;
begin
  execute format('select count(*) > %s from (select from %s limit %s) few', rows_at_once, of, rows_at_once + 1) into large;
  if large then
    insert into index_to_build values (name, format('create index concurrently if not exists %I on %s %s', name, of, definition));
  else
    execute format('create index %I on %s %s', name, of, definition);
  end if;
end $function$;

CREATE OR REPLACE FUNCTION public.count_agents_made()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  insert into agent_count as c (project_id, status, backend, agents)
  select project_id, status, pg_backend_pid(), count(*) from made group by project_id, status order by project_id, status
  on conflict (project_id, status, backend) do update set agents = c.agents + excluded.agents;
  return null;
end $function$;

CREATE OR REPLACE FUNCTION public.count_agents_gone()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  insert into agent_count as c (project_id, status, backend, agents)
  select project_id, status, pg_backend_pid(), -count(*) from gone group by project_id, status order by project_id, status
  on conflict (project_id, status, backend) do update set agents = c.agents + excluded.agents;
  return null;
end $function$;

CREATE OR REPLACE FUNCTION public.count_agent_moved()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  insert into agent_count as c (project_id, status, backend, agents)
  values (old.project_id, old.status, pg_backend_pid(), -1), (new.project_id, new.status, pg_backend_pid(), 1)
  on conflict (project_id, status, backend) do update set agents = c.agents + excluded.agents;
  return null;
end $function$;

CREATE OR REPLACE FUNCTION public.duration_key(seconds double precision)
 RETURNS smallint
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
RETURN (CASE WHEN (seconds < (0.000001)::double precision) THEN ('-1000'::integer)::double precision ELSE ceil((ln(seconds) / ln((1.02)::double precision))) END)::smallint;

CREATE OR REPLACE FUNCTION public.duration_of(key smallint)
 RETURNS double precision
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN (key = '-1000'::integer) THEN (0)::double precision ELSE (((2)::double precision * power((1.02)::double precision, (key)::double precision)) / (2.02)::double precision) END;

CREATE OR REPLACE FUNCTION public.bucket_floor(seconds integer, at timestamp with time zone)
 RETURNS timestamp with time zone
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
RETURN date_bin(make_interval(secs => (seconds)::double precision), at, '1970-01-01 00:00:00+00'::timestamp with time zone);

CREATE OR REPLACE FUNCTION public.bucket_ceil(seconds integer, at timestamp with time zone)
 RETURNS timestamp with time zone
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN (bucket_floor(seconds, at) = at) THEN at ELSE (bucket_floor(seconds, at) + make_interval(secs => (seconds)::double precision)) END;

CREATE OR REPLACE FUNCTION public.roll_up_tasks()
 RETURNS boolean
 LANGUAGE plpgsql
AS $function$
declare
  done timestamptz;
  horizon timestamptz;
  reached timestamptz;
  larger int;
begin
  if not pg_try_advisory_xact_lock(hashtext('cadre task rollups')) then return false; end if;
  select rolled_until into done from task_rollup_state;
  if done is null then
    select bucket_floor(60, finished_at) into done from task where finished_at is not null order by finished_at limit 1;
    if done is null then return false; end if;
  end if;
  select bucket_floor(60, least(clock_timestamp() - interval '1 minute', min(xact_start))) into horizon
  from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid();
  reached := least(horizon, bucket_floor(3600, done) + interval '1 hour');
  if reached <= done then return false; end if;

  insert into task_rollup
  with ended as materialized (
    select agent_id, bucket_floor(60, finished_at) as bucket, status, created_at,
      case when status <> 'canceled' then extract(epoch from finished_at - started_at) end as took,
      extract(epoch from finished_at - coalesce(started_at, created_at)) as took_in_all
    from task where finished_at >= done and finished_at < reached
  ), numbers as (
    select agent_id, bucket, count(*) filter (where status = 'completed') as completed,
      count(*) filter (where status in ('failed', 'expired')) as failed, count(*) filter (where status = 'canceled') as canceled,
      count(took) as timed, coalesce(sum(took), 0) * 1000000 as microseconds, sum(took_in_all) * 1000000 as all_microseconds,
      min(created_at) as first_created_at
    from ended group by agent_id, bucket
  ), sketches as (
    select agent_id, bucket, array_agg(key order by key) as keys, array_agg(n order by key) as counts from (
      select agent_id, bucket, duration_key(took::float8) as key, count(*) as n from ended where took is not null group by 1, 2, 3
    ) k group by agent_id, bucket
  )
  select agent_id, 60, bucket, completed, failed, canceled, timed, microseconds, all_microseconds, first_created_at,
    coalesce(keys, '{}'), coalesce(counts, '{}')
  from numbers left join sketches using (agent_id, bucket);

  foreach larger in array array[3600, 86400] loop
    exit when bucket_floor(larger, reached) <> reached;
    insert into task_rollup
    with parts as materialized (
      select * from task_rollup
      where seconds = case larger when 3600 then 60 else 3600 end and bucket >= reached - make_interval(secs => larger) and bucket < reached
    ), sketches as (
      select agent_id, array_agg(key order by key) as keys, array_agg(n order by key) as counts from (
        select agent_id, key, sum(n)::bigint as n from parts, unnest(keys, counts) as u(key, n) group by agent_id, key
      ) k group by agent_id
    )
    select agent_id, larger, reached - make_interval(secs => larger), sum(completed), sum(failed), sum(canceled), sum(timed),
      sum(microseconds), sum(all_microseconds), min(first_created_at), coalesce(s.keys, '{}'), coalesce(s.counts, '{}')
    from parts p left join sketches s using (agent_id) group by agent_id, s.keys, s.counts;
  end loop;

  insert into task_rollup_state (rolled_until) values (reached) on conflict (only_one) do update set rolled_until = excluded.rolled_until;
  return reached < horizon;
end $function$;

CREATE OR REPLACE FUNCTION public.count_log(agent text, of_level text, since timestamp with time zone, until timestamp with time zone)
 RETURNS bigint
 LANGUAGE plpgsql
 STABLE
 SET plan_cache_mode TO 'force_generic_plan'
AS $function$
declare
  rolled timestamptz;
  kept timestamptz;
  lo timestamptz;
  hi timestamptz;
  d_lo timestamptz;
  d_hi timestamptz;
  known bigint;
  fresh bigint;
begin
  select rolled_until, kept_from into rolled, kept from log_rollup_state;
  lo := greatest(bucket_ceil(900, since), kept);
  hi := greatest(lo, least(bucket_floor(900, until), coalesce(rolled, '-infinity')));
  d_lo := least(bucket_ceil(86400, lo), hi);
  d_hi := greatest(bucket_floor(86400, hi), d_lo);
  select coalesce(sum(case of_level when 'debug' then debug when 'info' then info when 'warn' then warn when 'error' then error
    else debug + info + warn + error end), 0) into known
  from (
    select * from log_rollup r where r.agent_id = agent and r.seconds = 900 and r.bucket >= lo and r.bucket < d_lo
    union all select * from log_rollup r where r.agent_id = agent and r.seconds = 900 and r.bucket >= d_hi and r.bucket < hi
    union all select * from log_rollup r where r.agent_id = agent and r.seconds = 86400 and r.bucket >= d_lo and r.bucket < d_hi
  ) parts;
  if of_level is null then
    select (select count(*) from agent_log l where l.agent_id = agent and l.timestamp >= since and l.timestamp < least(lo, until))
      + (select count(*) from agent_log l where l.agent_id = agent and l.timestamp >= hi and l.timestamp < until) into fresh;
  else
    select (select count(*) from agent_log l where l.agent_id = agent and l.level = of_level and l.timestamp >= since and l.timestamp < least(lo, until))
      + (select count(*) from agent_log l where l.agent_id = agent and l.level = of_level and l.timestamp >= hi and l.timestamp < until) into fresh;
  end if;
  return known + fresh;
end $function$;

CREATE OR REPLACE FUNCTION public.roll_up_logs()
 RETURNS boolean
 LANGUAGE plpgsql
AS $function$
declare
  done timestamptz;
  next timestamptz;
  horizon timestamptz;
  reached timestamptz;
  day timestamptz;
begin
  if not pg_try_advisory_xact_lock(hashtext('cadre log rollups')) then return false; end if;
  select rolled_until into done from log_rollup_state;
  select timestamp into next from agent_log where timestamp >= coalesce(done, '-infinity') order by timestamp limit 1;
  if done is null then
    if next is null then return false; end if;
    done := bucket_floor(900, next);
  end if;
  select bucket_floor(900, least(clock_timestamp() - interval '1 minute', min(xact_start))) into horizon
  from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid();
  -- Hours without an entry are passed over, up to the end of the day, of which the sum is made then.
  day := bucket_floor(86400, done);
  reached := least(horizon, day + interval '1 day', coalesce(greatest(bucket_floor(3600, next), bucket_floor(3600, done)) + interval '1 hour', 'infinity'));
  if reached <= done then return false; end if;

  insert into log_rollup
  select agent_id, 900, bucket_floor(900, timestamp), count(*) filter (where level = 'debug'), count(*) filter (where level = 'info'),
    count(*) filter (where level = 'warn'), count(*) filter (where level = 'error')
  from agent_log where timestamp >= done and timestamp < reached group by 1, 3;
  if reached = day + interval '1 day' then
    insert into log_rollup
    select agent_id, 86400, day, sum(debug), sum(info), sum(warn), sum(error)
    from log_rollup where seconds = 900 and bucket >= day and bucket < reached group by agent_id;
  end if;

  insert into log_rollup_state (rolled_until) values (reached) on conflict (only_one) do update set rolled_until = excluded.rolled_until;
  return reached < horizon;
end $function$;

CREATE OR REPLACE FUNCTION public.ended_tasks(agent text, since timestamp with time zone, until timestamp with time zone)
 RETURNS TABLE(status text, created_at timestamp with time zone, started_at timestamp with time zone, finished_at timestamp with time zone)
 LANGUAGE plpgsql
 STABLE ROWS 100
 SET enable_seqscan TO 'off'
AS $function$
begin
  return query
    select t.status, t.created_at, t.started_at, t.finished_at from task t
    where t.agent_id = agent and t.finished_at >= since and t.finished_at < until;
end $function$;

CREATE OR REPLACE FUNCTION public.add_task_totals(amounts jsonb)
 RETURNS void
 LANGUAGE sql
AS $function$
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
$function$;

CREATE OR REPLACE FUNCTION public.take_off_task_totals()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
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
end $function$;

CREATE OR REPLACE FUNCTION public.roll_up_task_totals()
 RETURNS boolean
 LANGUAGE plpgsql
AS $function$
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
end $function$;

CREATE OR REPLACE FUNCTION public.count_tasks(project bigint, agent text, of_status text, since timestamp with time zone, until timestamp with time zone, OUT total bigint, OUT first_id text, OUT last_id text)
 RETURNS record
 LANGUAGE plpgsql
 STABLE
 SET enable_seqscan TO 'off'
AS $function$
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
end $function$;

CREATE OR REPLACE FUNCTION public.project_log_page(project bigint, of_level text, since timestamp with time zone, until timestamp with time zone, skip bigint, take bigint, OUT total bigint, OUT lo timestamp with time zone, OUT hi timestamp with time zone, OUT newer bigint)
 RETURNS record
 LANGUAGE plpgsql
 STABLE
 SET plan_cache_mode TO 'force_custom_plan'
AS $function$
declare
  rolled timestamptz;
  kept timestamptz;
  -- Between these whole quarters of an hour are summed up, and between the next two whole days.
  r_lo timestamptz;
  r_hi timestamptz;
  d_lo timestamptz;
  d_hi timestamptz;
  newest bigint;
  oldest bigint;
begin
  select rolled_until, kept_from into rolled, kept from log_rollup_state;
  r_lo := greatest(bucket_ceil(900, since), kept);
  r_hi := greatest(r_lo, least(bucket_floor(900, until), coalesce(rolled, '-infinity')));
  d_lo := least(bucket_ceil(86400, r_lo), r_hi);
  d_hi := greatest(bucket_floor(86400, r_hi), d_lo);
  select count(*) into newest from agent_log l where l.timestamp >= r_hi and l.timestamp < until
    and l.agent_id in (select id from agent where project_id = project) and (of_level is null or l.level = of_level);
  select count(*) into oldest from agent_log l where l.timestamp >= since and l.timestamp < least(r_lo, until)
    and l.agent_id in (select id from agent where project_id = project) and (of_level is null or l.level = of_level);

  -- To the day.
  with part as (
    select r_hi as a, until as z, newest as n
    union all select since, least(r_lo, until), oldest
    union all select r.bucket, r.bucket + make_interval(secs => r.seconds), sum(case of_level when 'debug' then debug when 'info' then info
        when 'warn' then warn when 'error' then error else debug + info + warn + error end)
      from log_rollup r where r.agent_id in (select id from agent where project_id = project)
        and (r.seconds = 86400 and r.bucket >= d_lo and r.bucket < d_hi
          or r.seconds = 900 and (r.bucket >= r_lo and r.bucket < d_lo or r.bucket >= d_hi and r.bucket < r_hi))
      group by r.seconds, r.bucket
  ), counted as (select a, z, n, sum(n) over (order by z desc) as upto from part where n > 0)
  select coalesce(sum(n), 0), (array_agg(z order by z desc) filter (where upto > skip))[1],
    (array_agg(upto - n order by z desc) filter (where upto > skip))[1], (array_agg(a order by z desc) filter (where upto >= skip + take))[1]
  into total, hi, newer, lo from counted;
  if hi is null then return; end if;
  lo := coalesce(lo, since);

  -- To the quarter of an hour.
  with part as (
    select r_hi as a, until as z, newest as n where hi > r_hi
    union all select since, least(r_lo, until), oldest where lo < r_lo
    union all select r.bucket, r.bucket + interval '15 minutes', sum(case of_level when 'debug' then debug when 'info' then info
        when 'warn' then warn when 'error' then error else debug + info + warn + error end)
      from log_rollup r where r.agent_id in (select id from agent where project_id = project)
        and r.seconds = 900 and r.bucket >= greatest(lo, r_lo) and r.bucket < least(hi, r_hi)
      group by r.bucket
  ), counted as (select a, z, n, newer + sum(n) over (order by z desc) as upto from part where n > 0)
  select (array_agg(z order by z desc) filter (where upto > skip))[1], (array_agg(upto - n order by z desc) filter (where upto > skip))[1],
    coalesce((array_agg(a order by z desc) filter (where upto >= skip + take))[1], lo)
  into hi, newer, lo from counted;
end $function$;

CREATE OR REPLACE FUNCTION public.count_projects_made()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  insert into project_count as c (org_id, backend, projects)
  select org_id, pg_backend_pid(), count(*) from made group by org_id order by org_id
  on conflict (org_id, backend) do update set projects = c.projects + excluded.projects;
  return null;
end $function$;

CREATE OR REPLACE FUNCTION public.count_projects_gone()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  insert into project_count as c (org_id, backend, projects)
  select org_id, pg_backend_pid(), -count(*) from gone group by org_id order by org_id
  on conflict (org_id, backend) do update set projects = c.projects + excluded.projects;
  return null;
end $function$;

CREATE OR REPLACE FUNCTION public.count_project_moved()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  insert into project_count as c (org_id, backend, projects)
  values (old.org_id, pg_backend_pid(), -1), (new.org_id, pg_backend_pid(), 1)
  on conflict (org_id, backend) do update set projects = c.projects + excluded.projects;
  return null;
end $function$;

CREATE OR REPLACE FUNCTION public.task_series(agent text, lo timestamp with time zone, hi timestamp with time zone, largest integer)
 RETURNS TABLE(bucket timestamp with time zone, completed bigint, failed bigint, timed bigint, microseconds bigint)
 LANGUAGE plpgsql
 STABLE ROWS 2000
AS $function$
declare
  h_lo timestamptz := case when largest < 3600 then hi else least(bucket_ceil(3600, lo), hi) end;
  h_hi timestamptz := case when largest < 3600 then hi else greatest(bucket_floor(3600, hi), h_lo) end;
  d_lo timestamptz := case when largest < 86400 then h_hi else least(bucket_ceil(86400, h_lo), h_hi) end;
  d_hi timestamptz := case when largest < 86400 then h_hi else greatest(bucket_floor(86400, h_hi), d_lo) end;
begin
  return query
    select r.bucket, r.completed, r.failed, r.timed, r.microseconds from task_rollup r where r.agent_id = agent and (
      r.seconds = 60 and r.bucket >= lo and r.bucket < h_lo
      or r.seconds = 60 and r.bucket >= h_hi and r.bucket < hi
      or r.seconds = 3600 and r.bucket >= h_lo and r.bucket < d_lo
      or r.seconds = 3600 and r.bucket >= d_hi and r.bucket < h_hi
      or r.seconds = 86400 and r.bucket >= d_lo and r.bucket < d_hi);
end $function$;

CREATE OR REPLACE FUNCTION public.file_gone()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  insert into file_object_left (file_id) select id from gone where store = 's3' on conflict do nothing;
  return null;
end $function$;

create table agent (
  id identifier not null,
  project_id bigint not null,
  name text collate "C" not null,
  description text not null default ''::text,
  status text not null,
  settles_to text,
  settle_attempts integer not null default 0,
  launch_trigger text,
  revision bigint not null default 1,
  version integer not null default 0,
  config jsonb not null,
  environment bytea,
  metadata jsonb not null default '{}'::jsonb,
  created_by identifier not null,
  token_subject text not null,
  created_at timestamp with time zone not null default now(),
  updated_at timestamp with time zone not null default now(),
  last_activity timestamp with time zone,
  max_concurrent_tasks integer generated always as (((config ->> 'max_concurrent_tasks'::text))::integer) stored,
  constraint agent_pkey PRIMARY KEY (id),
  constraint agent_launch_trigger_check CHECK (launch_trigger = ANY (ARRAY['create'::text, 'launch'::text])),
  constraint agent_settles_to_check CHECK (settles_to = ANY (ARRAY['running'::text, 'paused'::text, 'stopped'::text])),
  constraint agent_status_check CHECK (status = ANY (ARRAY['creating'::text, 'running'::text, 'paused'::text, 'stopped'::text, 'error'::text, 'updating'::text]))
);

create table agent_count (
  project_id bigint not null,
  status text not null,
  backend integer not null,
  agents bigint not null,
  constraint agent_count_pkey PRIMARY KEY (project_id, status, backend)
) with (fillfactor=50);

create table agent_log (
  id identifier not null,
  agent_id identifier not null,
  task_id identifier,
  "timestamp" timestamp with time zone not null default clock_timestamp(),
  level text not null,
  message text not null,
  context jsonb not null default '{}'::jsonb,
  constraint agent_log_pkey PRIMARY KEY ("timestamp", id),
  constraint agent_log_level_check CHECK (level = ANY (ARRAY['debug'::text, 'info'::text, 'warn'::text, 'error'::text]))
) partition by RANGE ("timestamp");

create table agent_usage (
  agent_id identifier not null,
  minute timestamp with time zone not null,
  model_calls bigint not null default 0,
  tool_calls bigint not null default 0,
  input_tokens bigint not null default 0,
  output_tokens bigint not null default 0,
  network_in bigint not null default 0,
  network_out bigint not null default 0,
  cpu_seconds double precision not null default 0,
  memory_byte_seconds double precision not null default 0,
  cpu_seconds_available double precision not null default 0,
  memory_byte_seconds_available double precision not null default 0,
  stored_bytes bigint not null default 0,
  constraint agent_usage_pkey PRIMARY KEY (agent_id, minute)
);

create table agent_version (
  agent_id identifier not null,
  version integer not null,
  name text not null,
  description text not null,
  config jsonb not null,
  environment bytea,
  created_by identifier not null,
  created_at timestamp with time zone not null default now(),
  constraint agent_version_pkey PRIMARY KEY (agent_id, version)
);

create table api_key (
  id identifier not null,
  hash bytea not null,
  preview text not null,
  org_id identifier not null,
  user_id identifier not null,
  name text not null,
  description text not null default ''::text,
  scopes text[] not null,
  created_at timestamp with time zone not null default now(),
  updated_at timestamp with time zone,
  expires_at timestamp with time zone,
  revoked_at timestamp with time zone,
  previous_hash bytea,
  previous_expires_at timestamp with time zone,
  last_ip text,
  queues text[],
  constraint api_key_pkey PRIMARY KEY (id),
  constraint api_key_hash_key UNIQUE (hash)
);

create table api_key_call (
  key_id identifier not null,
  day date not null,
  operation text not null,
  requests bigint not null,
  last_at timestamp with time zone not null,
  constraint api_key_call_pkey PRIMARY KEY (key_id, day, operation)
);

create table api_key_usage (
  key_id identifier not null,
  hour timestamp with time zone not null,
  requests bigint not null default 0,
  last_at timestamp with time zone not null,
  constraint api_key_usage_pkey PRIMARY KEY (key_id, hour)
);

create table app_user (
  id identifier not null,
  email text not null,
  name text not null,
  avatar_url text not null default ''::text,
  email_verified boolean not null default false,
  plan text not null default 'free'::text,
  password_hash text,
  disabled_at timestamp with time zone,
  created_at timestamp with time zone not null default now(),
  updated_at timestamp with time zone not null default now(),
  preferences jsonb not null default '{}'::jsonb,
  constraint app_user_pkey PRIMARY KEY (id),
  constraint app_user_plan_check CHECK (plan = ANY (ARRAY['free'::text, 'team'::text, 'enterprise'::text]))
);

create table approval (
  id identifier not null,
  project_id bigint not null,
  agent_id identifier not null,
  task_id identifier not null,
  step_id identifier not null,
  step_index integer not null,
  kind text not null,
  status text not null default 'pending'::text,
  tool text not null,
  arguments jsonb,
  call_hash text not null,
  parameters jsonb,
  approved_arguments jsonb,
  result jsonb,
  on_timeout text not null default 'reject'::text,
  resolved_by identifier,
  resolved_at timestamp with time zone,
  reason text,
  expires_at timestamp with time zone,
  created_at timestamp with time zone not null default now(),
  constraint approval_pkey PRIMARY KEY (id),
  constraint approval_kind_check CHECK (kind = ANY (ARRAY['tool_call'::text, 'recovery'::text])),
  constraint approval_on_timeout_check CHECK (on_timeout = ANY (ARRAY['reject'::text, 'cancel'::text])),
  constraint approval_status_check CHECK (status = ANY (ARRAY['pending'::text, 'approved'::text, 'rejected'::text, 'expired'::text]))
);

create table audit (
  id identifier not null,
  at timestamp with time zone not null default now(),
  org_id identifier,
  actor text,
  action text not null,
  target text,
  request_id text,
  detail jsonb not null default '{}'::jsonb,
  credential_kind text,
  credential_id text,
  ip text,
  user_agent text,
  before jsonb,
  after jsonb,
  constraint audit_pkey PRIMARY KEY (id),
  constraint audit_credential_kind_check CHECK (credential_kind = ANY (ARRAY['api_key'::text, 'token'::text, 'session'::text, 'lease'::text]))
);

create table budget (
  id identifier not null,
  org_id identifier not null,
  project_id bigint not null,
  scope text not null,
  subject identifier not null,
  agent_id identifier,
  key_id identifier,
  max_cost_usd numeric,
  max_tokens bigint,
  period text not null,
  window_start timestamp with time zone not null,
  spent_cost_usd numeric not null default 0,
  spent_tokens bigint not null default 0,
  held_cost_usd numeric not null default 0,
  held_tokens bigint not null default 0,
  warned boolean not null default false,
  created_by identifier not null,
  created_at timestamp with time zone not null default now(),
  updated_at timestamp with time zone not null default now(),
  warn_percent integer not null default 80,
  max_sandbox_seconds bigint,
  spent_sandbox_seconds double precision not null default 0,
  sandbox_window timestamp with time zone,
  constraint budget_pkey PRIMARY KEY (id),
  constraint budget_check CHECK (max_cost_usd IS NOT NULL OR max_tokens IS NOT NULL OR max_sandbox_seconds IS NOT NULL),
  constraint budget_held_cost_usd_check CHECK (held_cost_usd >= 0::numeric),
  constraint budget_held_tokens_check CHECK (held_tokens >= 0),
  constraint budget_max_cost_usd_check CHECK (max_cost_usd >= 0::numeric),
  constraint budget_max_sandbox_seconds_check CHECK (max_sandbox_seconds >= 0),
  constraint budget_max_tokens_check CHECK (max_tokens >= 0),
  constraint budget_period_check CHECK (period = ANY (ARRAY['hour'::text, 'day'::text, 'month'::text, 'total'::text])),
  constraint budget_scope_check CHECK (scope = ANY (ARRAY['agent'::text, 'project'::text, 'api_key'::text, 'organization'::text, 'task'::text])),
  constraint budget_spent_sandbox_seconds_check CHECK (spent_sandbox_seconds >= 0::double precision),
  constraint budget_warn_percent_check CHECK (warn_percent >= 1 AND warn_percent <= 100)
) with (fillfactor=70);

create table credential (
  id identifier not null,
  project_id bigint not null,
  name text collate "C" not null,
  value bytea not null,
  created_by identifier not null,
  created_at timestamp with time zone not null default now(),
  updated_at timestamp with time zone not null default now(),
  type text not null default 'secret'::text,
  allowed_hosts text[],
  constraint credential_pkey PRIMARY KEY (id),
  constraint credential_type_check CHECK (type = ANY (ARRAY['secret'::text, 'oauth2'::text]))
);

create table credential_authorization (
  state_hash bytea not null,
  credential_id identifier not null,
  user_id identifier not null,
  verifier bytea not null,
  expires_at timestamp with time zone not null,
  constraint credential_authorization_pkey PRIMARY KEY (state_hash)
);

create table credential_oauth (
  credential_id identifier not null,
  settings jsonb not null,
  client_secret bytea,
  status text not null default 'needs_authorization'::text,
  error jsonb,
  tokens bytea,
  generation bigint not null default 0,
  expires_at timestamp with time zone,
  renew_at timestamp with time zone,
  rotates boolean,
  lease text,
  leased_until timestamp with time zone,
  failures integer not null default 0,
  retry_at timestamp with time zone,
  connected_at timestamp with time zone,
  refusals integer not null default 0,
  refusals_since timestamp with time zone,
  constraint credential_oauth_pkey PRIMARY KEY (credential_id),
  constraint credential_oauth_status_check CHECK (status = ANY (ARRAY['connected'::text, 'needs_authorization'::text, 'failing'::text]))
);

create table delegation (
  child_task_id identifier not null,
  parent_task_id identifier not null,
  step_index integer not null,
  project_id bigint not null,
  agent_id identifier not null,
  agent_version integer,
  depth_max integer not null,
  input jsonb,
  state text not null default 'requested'::text,
  refusal jsonb,
  created_at timestamp with time zone not null default now(),
  constraint delegation_pkey PRIMARY KEY (child_task_id),
  constraint delegation_state_check CHECK (state = ANY (ARRAY['requested'::text, 'created'::text, 'refused'::text, 'settled'::text]))
);

create table delivery (
  id identifier not null,
  webhook_id identifier not null,
  org_id identifier not null,
  event_id identifier not null,
  event text not null,
  status text not null default 'pending'::text,
  failure text,
  attempts integer not null default 0,
  round_attempts integer not null default 0,
  is_redelivery boolean not null default false,
  is_test boolean not null default false,
  next_attempt_at timestamp with time zone,
  last_response_status integer,
  created_at timestamp with time zone not null default now(),
  finished_at timestamp with time zone,
  constraint delivery_pkey PRIMARY KEY (id),
  constraint delivery_failure_check CHECK (failure = ANY (ARRAY['attempts_exhausted'::text, 'webhook_disabled'::text, 'gone'::text])),
  constraint delivery_status_check CHECK (status = ANY (ARRAY['pending'::text, 'delivered'::text, 'failed'::text]))
) partition by RANGE (id);

create table delivery_attempt (
  delivery_id identifier not null,
  attempt integer not null,
  at timestamp with time zone not null,
  duration_ms integer not null,
  request_url text not null,
  request_headers jsonb not null,
  response_status integer,
  response_headers jsonb,
  response_body bytea,
  error text,
  constraint delivery_attempt_pkey PRIMARY KEY (delivery_id, attempt)
) partition by RANGE (delivery_id);

create table door_conversation (
  id identifier not null,
  org_id identifier not null,
  thread_id identifier,
  items jsonb not null default '[]'::jsonb,
  metadata jsonb not null default '{}'::jsonb,
  created_by identifier not null,
  deleted_at timestamp with time zone,
  created_at timestamp with time zone not null default now(),
  constraint door_conversation_pkey PRIMARY KEY (id)
);

create table door_key (
  door text not null,
  credential_id identifier not null,
  key text not null,
  hash bytea not null,
  response_id identifier not null,
  task_id identifier not null,
  created_at timestamp with time zone not null default now(),
  constraint door_key_pkey PRIMARY KEY (credential_id, door, key),
  constraint door_key_door_check CHECK (door = ANY (ARRAY['a2a'::text, 'agui'::text]))
);

create table door_request (
  id bigint not null generated always as identity,
  credential_id identifier not null,
  hash bytea not null,
  response_id identifier not null,
  task_id identifier not null,
  state text not null,
  process_id identifier not null,
  created_at timestamp with time zone not null default now(),
  constraint door_request_pkey PRIMARY KEY (credential_id, hash, id),
  constraint door_request_state_check CHECK (state = ANY (ARRAY['open'::text, 'broken'::text, 'answered'::text]))
);

create table door_response (
  id identifier not null,
  project_id bigint not null,
  task_id identifier not null,
  ordinal integer not null,
  first_sequence integer not null,
  request jsonb not null,
  input jsonb not null,
  conversation identifier,
  previous identifier,
  store boolean not null,
  resolves boolean not null,
  deleted_at timestamp with time zone,
  created_at timestamp with time zone not null default now(),
  constraint door_response_pkey PRIMARY KEY (id),
  constraint door_response_task_id_ordinal_key UNIQUE (task_id, ordinal)
);

create table door_thread (
  door text not null,
  owner identifier not null,
  key text not null,
  agent_id identifier not null,
  thread_id identifier not null,
  created_at timestamp with time zone not null default now(),
  constraint door_thread_pkey PRIMARY KEY (owner, door, agent_id, key),
  constraint door_thread_door_check CHECK (door = ANY (ARRAY['a2a'::text, 'agui'::text]))
);

create table event (
  id identifier not null,
  org_id identifier not null,
  project_id bigint,
  agent_id identifier,
  type text not null,
  occurred_at timestamp with time zone not null default now(),
  data jsonb not null,
  matched_at timestamp with time zone,
  constraint event_pkey PRIMARY KEY (id)
) partition by RANGE (id);

create table file (
  id identifier not null,
  project_id bigint not null,
  name text not null,
  media_type text not null,
  bytes bigint not null default 0,
  sha256 text,
  store text not null default 'database'::text,
  task_id identifier,
  call_key text,
  is_artifact boolean not null default false,
  named_at timestamp with time zone,
  created_by identifier not null,
  created_at timestamp with time zone not null default now(),
  constraint file_pkey PRIMARY KEY (id),
  constraint file_store_check CHECK (store = ANY (ARRAY['database'::text, 's3'::text]))
);

create table file_object_left (
  file_id identifier not null,
  constraint file_object_left_pkey PRIMARY KEY (file_id)
);

create table file_piece (
  file_id identifier not null,
  index integer not null,
  bytes bytea not null,
  constraint file_piece_pkey PRIMARY KEY (file_id, index)
);

create table freed_gate (
  id bigint not null generated always as identity,
  gate text not null,
  freed_at timestamp with time zone not null default now(),
  constraint freed_gate_pkey PRIMARY KEY (id)
);

create table idempotency (
  subject text not null,
  key text not null,
  hash bytea not null,
  status integer not null,
  body bytea not null,
  created_at timestamp with time zone not null default now(),
  constraint idempotency_pkey PRIMARY KEY (subject, key)
);

create table identity (
  issuer text not null,
  subject text not null,
  user_id identifier not null,
  id identifier not null,
  email text,
  created_at timestamp with time zone not null default now(),
  last_sign_in_at timestamp with time zone not null default now(),
  constraint identity_pkey PRIMARY KEY (issuer, subject),
  constraint identity_id_key UNIQUE (id)
);

create table index_to_build (
  name text not null,
  statement text not null,
  constraint index_to_build_pkey PRIMARY KEY (name)
);

create table invitation (
  id identifier not null,
  org_id identifier not null,
  token_hash bytea not null,
  role text not null,
  email text,
  created_by identifier not null,
  created_at timestamp with time zone not null default now(),
  expires_at timestamp with time zone not null,
  accepted_at timestamp with time zone,
  accepted_by identifier,
  revoked_at timestamp with time zone,
  constraint invitation_pkey PRIMARY KEY (id),
  constraint invitation_token_hash_key UNIQUE (token_hash),
  constraint invitation_role_check CHECK (role = ANY (ARRAY['owner'::text, 'admin'::text, 'member'::text, 'viewer'::text]))
);

create table log_rollup (
  agent_id identifier not null,
  seconds integer not null,
  bucket timestamp with time zone not null,
  debug bigint not null,
  info bigint not null,
  warn bigint not null,
  error bigint not null,
  constraint log_rollup_pkey PRIMARY KEY (agent_id, seconds, bucket),
  constraint log_rollup_seconds_check CHECK (seconds = ANY (ARRAY[900, 86400]))
);

create table log_rollup_state (
  only_one boolean not null default true,
  rolled_until timestamp with time zone not null,
  kept_from timestamp with time zone not null default '-infinity'::timestamp with time zone,
  constraint log_rollup_state_pkey PRIMARY KEY (only_one),
  constraint log_rollup_state_only_one_check CHECK (only_one)
);

create table login_attempt (
  id bigint not null generated always as identity,
  account text not null,
  ip text not null,
  at timestamp with time zone not null default now(),
  constraint login_attempt_pkey PRIMARY KEY (id)
);

create table member (
  org_id identifier not null,
  user_id identifier not null,
  role text not null,
  joined_at timestamp with time zone not null default now(),
  constraint member_pkey PRIMARY KEY (org_id, user_id),
  constraint member_role_check CHECK (role = ANY (ARRAY['owner'::text, 'admin'::text, 'member'::text, 'viewer'::text]))
);

create table model_provider (
  id identifier not null,
  org_id identifier not null,
  name text collate "C" not null,
  base_url text not null,
  protocol text not null,
  api_key bytea,
  key_preview text,
  projects bigint[],
  created_by identifier not null,
  created_at timestamp with time zone not null default now(),
  updated_at timestamp with time zone not null default now(),
  prices jsonb not null default '{}'::jsonb,
  constraint model_provider_pkey PRIMARY KEY (id),
  constraint model_provider_name UNIQUE (org_id, name)
);

create table model_warning (
  agent_id identifier not null,
  version integer not null,
  warning text not null,
  warned_at timestamp with time zone not null default now(),
  constraint model_warning_pkey PRIMARY KEY (agent_id, version, warning)
);

create table oauth_artifact (
  kind text not null,
  id bytea not null,
  grant_id identifier,
  payload jsonb not null,
  consumed_at timestamp with time zone,
  expires_at timestamp with time zone not null,
  created_at timestamp with time zone not null default now(),
  constraint oauth_artifact_pkey PRIMARY KEY (kind, id)
);

create table oauth_client (
  client_id text not null,
  org_id identifier,
  name text not null,
  secret_hash text,
  redirect_uris text[] not null,
  scopes text[] not null,
  native boolean not null default false,
  created_at timestamp with time zone not null default now(),
  updated_at timestamp with time zone,
  document_until timestamp with time zone,
  constraint oauth_client_pkey PRIMARY KEY (client_id),
  constraint oauth_client_origin_check CHECK ((org_id IS NULL) = (document_until IS NOT NULL))
);

create table oauth_consent (
  user_id identifier not null,
  client_id text not null,
  org_id identifier not null,
  scopes text[] not null,
  constraint oauth_consent_pkey PRIMARY KEY (user_id, client_id)
);

create table oauth_grant (
  id identifier not null,
  user_id identifier not null,
  org_id identifier not null,
  client_id text not null,
  scopes text[] not null,
  created_at timestamp with time zone not null default now(),
  last_activity timestamp with time zone not null default now(),
  expires_at timestamp with time zone not null,
  ip text not null,
  user_agent text not null,
  resource text,
  constraint oauth_grant_pkey PRIMARY KEY (id)
);

create unlogged table open_stream (
  subject text not null,
  holders jsonb not null,
  constraint open_stream_pkey PRIMARY KEY (subject)
);

create table organization (
  id identifier not null,
  name text not null,
  created_at timestamp with time zone not null default now(),
  updated_at timestamp with time zone not null default now(),
  client_documents boolean not null default true,
  model_providers_version integer not null default 0,
  constraint organization_pkey PRIMARY KEY (id)
);

create table project (
  id bigint not null generated always as identity,
  org_id identifier not null,
  name text collate "C" not null,
  created_at timestamp with time zone not null default now(),
  updated_at timestamp with time zone not null default now(),
  constraint project_pkey PRIMARY KEY (id)
);

create table project_count (
  org_id identifier not null,
  backend integer not null,
  projects bigint not null,
  constraint project_count_pkey PRIMARY KEY (org_id, backend)
) with (fillfactor=50);

create unlogged table rate_window (
  subject text not null,
  bucket text not null,
  hour_start timestamp with time zone not null,
  hour_used bigint not null,
  minute_start timestamp with time zone not null,
  minute_used bigint not null,
  admitted boolean not null,
  hour_refused bigint not null default 0,
  previous_hour_refused bigint not null default 0,
  refused_at timestamp with time zone,
  constraint rate_window_pkey PRIMARY KEY (subject, bucket)
);

create table refusal_hour (
  org_id identifier not null,
  hour timestamp with time zone not null,
  subject identifier not null,
  bucket text not null,
  user_id identifier not null,
  refused bigint not null,
  last_at timestamp with time zone not null,
  constraint refusal_hour_pkey PRIMARY KEY (org_id, hour, subject, bucket)
);

create table removed_agent (
  agent_id identifier not null,
  removed_at timestamp with time zone not null default now(),
  purged_at timestamp with time zone,
  constraint removed_agent_pkey PRIMARY KEY (agent_id)
);

create table schedule (
  id identifier not null,
  project_id bigint not null,
  agent_id identifier not null,
  thread_id identifier,
  name text not null,
  cron text not null,
  time_zone text not null,
  input jsonb not null,
  priority integer not null,
  timeout_seconds integer,
  budget jsonb not null default '{}'::jsonb,
  metadata jsonb not null default '{}'::jsonb,
  status text not null default 'active'::text,
  overlap text not null,
  catch_up text not null,
  next_run_at timestamp with time zone,
  last_run_at timestamp with time zone,
  last_task_id identifier,
  tasks_created bigint not null default 0,
  skipped bigint not null default 0,
  last_error jsonb,
  created_by identifier not null,
  created_at timestamp with time zone not null default now(),
  updated_at timestamp with time zone not null default now(),
  constraint schedule_pkey PRIMARY KEY (id),
  constraint schedule_catch_up_check CHECK (catch_up = ANY (ARRAY['once'::text, 'none'::text])),
  constraint schedule_check CHECK ((status = 'paused'::text) = (next_run_at IS NULL)),
  constraint schedule_overlap_check CHECK (overlap = ANY (ARRAY['skip'::text, 'queue'::text])),
  constraint schedule_status_check CHECK (status = ANY (ARRAY['active'::text, 'paused'::text]))
);

create table service_secret (
  name text not null,
  value bytea not null,
  created_at timestamp with time zone not null default now(),
  constraint service_secret_pkey PRIMARY KEY (name)
);

create table session (
  id identifier not null,
  secret_hash bytea not null,
  user_id identifier not null,
  created_at timestamp with time zone not null default now(),
  last_activity timestamp with time zone not null default now(),
  idle_expires_at timestamp with time zone not null,
  expires_at timestamp with time zone not null,
  ip text not null,
  user_agent text not null,
  constraint session_pkey PRIMARY KEY (id),
  constraint session_secret_hash_key UNIQUE (secret_hash)
);

create table task (
  id identifier not null,
  project_id bigint not null,
  agent_id identifier not null,
  agent_version integer not null,
  thread_id identifier,
  retried_from identifier,
  schedule_id identifier,
  status text not null,
  wait jsonb,
  input jsonb not null,
  output jsonb,
  error jsonb,
  priority integer not null default 5,
  concurrency_key text,
  run_after timestamp with time zone,
  queue_ttl_seconds integer,
  timeout_seconds integer,
  max_attempts integer not null,
  budget jsonb not null default '{}'::jsonb,
  usage jsonb not null,
  metadata jsonb not null default '{}'::jsonb,
  created_by identifier not null,
  request_id text,
  trace_id text,
  attempt integer not null default 0,
  writes integer not null default 0,
  crashes integer not null default 0,
  worker_id text,
  job_id uuid,
  job_attempt integer not null default '-1'::integer,
  cancel jsonb,
  cancel_requested_at timestamp with time zone,
  last_sequence integer not null default 0,
  expires_at timestamp with time zone,
  created_at timestamp with time zone not null default now(),
  started_at timestamp with time zone,
  finished_at timestamp with time zone,
  updated_at timestamp with time zone not null default now(),
  credential_id identifier,
  traceparent text,
  unseen integer not null default 0,
  hold jsonb,
  thread_position integer,
  due_at timestamp with time zone,
  slot text,
  backlog boolean not null default false,
  output_schema jsonb,
  caller jsonb,
  parent_task_id identifier,
  root_task_id identifier,
  depth integer not null default 0,
  children_usage jsonb,
  constraint task_pkey PRIMARY KEY (id),
  constraint task_slot_check CHECK (slot = ANY (ARRAY['held'::text, 'wanted'::text])),
  constraint task_status_check CHECK (status = ANY (ARRAY['queued'::text, 'running'::text, 'waiting'::text, 'completed'::text, 'failed'::text, 'canceled'::text, 'expired'::text]))
) with (fillfactor=80);

create table task_event (
  task_id identifier not null,
  sequence integer not null,
  type text not null,
  data jsonb not null,
  created_at timestamp with time zone not null default now(),
  xid xid8 not null default pg_current_xact_id(),
  constraint task_event_pkey PRIMARY KEY (task_id, sequence)
) partition by RANGE (task_id);

create table task_file (
  task_id identifier not null,
  file_id identifier not null,
  constraint task_file_pkey PRIMARY KEY (task_id, file_id)
);

create table task_message (
  task_id identifier not null,
  "position" integer not null,
  id identifier not null,
  content text not null,
  before_step integer,
  created_by identifier not null,
  created_at timestamp with time zone not null default now(),
  parts jsonb,
  constraint task_message_pkey PRIMARY KEY (task_id, "position")
);

create table task_rollup (
  agent_id identifier not null,
  seconds integer not null,
  bucket timestamp with time zone not null,
  completed bigint not null,
  failed bigint not null,
  canceled bigint not null,
  timed bigint not null,
  microseconds bigint not null,
  all_microseconds bigint not null,
  first_created_at timestamp with time zone not null,
  keys smallint[] not null,
  counts bigint[] not null,
  constraint task_rollup_pkey PRIMARY KEY (agent_id, seconds, bucket),
  constraint task_rollup_seconds_check CHECK (seconds = ANY (ARRAY[60, 3600, 86400]))
);

create table task_rollup_state (
  only_one boolean not null default true,
  rolled_until timestamp with time zone not null,
  constraint task_rollup_state_pkey PRIMARY KEY (only_one),
  constraint task_rollup_state_only_one_check CHECK (only_one)
);

create table task_step (
  task_id identifier not null,
  index integer not null,
  id identifier not null,
  agent_id identifier not null,
  type text not null,
  status text not null,
  attempt integer not null,
  failures integer not null default 0,
  name text not null,
  input jsonb,
  output jsonb,
  error jsonb,
  model text,
  usage jsonb,
  started_at timestamp with time zone not null default now(),
  finished_at timestamp with time zone,
  turn bytea,
  constraint task_step_pkey PRIMARY KEY (task_id, index),
  constraint task_step_status_check CHECK (status = ANY (ARRAY['started'::text, 'completed'::text, 'failed'::text, 'unknown'::text])),
  constraint task_step_type_check CHECK (type = ANY (ARRAY['model_call'::text, 'tool_call'::text, 'approval'::text, 'wait'::text, 'compaction'::text]))
) partition by RANGE (task_id);

create table task_total (
  project_id bigint not null,
  agent_id identifier not null,
  seconds integer not null,
  bucket timestamp with time zone not null,
  completed bigint not null,
  failed bigint not null,
  canceled bigint not null,
  expired bigint not null,
  first_id identifier not null,
  last_id identifier not null,
  constraint task_total_pkey PRIMARY KEY (project_id, agent_id, seconds, bucket),
  constraint task_total_seconds_check CHECK (seconds = ANY (ARRAY[3600, 86400]))
);

create table task_total_state (
  only_one boolean not null default true,
  rolled_until timestamp with time zone not null,
  constraint task_total_state_pkey PRIMARY KEY (only_one),
  constraint task_total_state_only_one_check CHECK (only_one)
);

create table test_case (
  id identifier not null,
  agent_id identifier not null,
  name text collate "C" not null,
  input jsonb not null,
  expected text,
  created_by identifier not null,
  created_at timestamp with time zone not null default now(),
  updated_at timestamp with time zone not null default now(),
  constraint test_case_pkey PRIMARY KEY (id)
);

create table thread (
  id identifier not null,
  project_id bigint not null,
  agent_id identifier not null,
  metadata jsonb not null default '{}'::jsonb,
  created_by identifier not null,
  created_at timestamp with time zone not null default now(),
  updated_at timestamp with time zone not null default now(),
  parent_thread_id identifier,
  parent_position integer,
  hidden boolean not null default false,
  constraint thread_pkey PRIMARY KEY (id)
);

create table token_usage (
  subject text not null,
  hour timestamp with time zone not null,
  tokens bigint not null,
  constraint token_usage_pkey PRIMARY KEY (subject, hour)
);

create table tool (
  id identifier not null,
  project_id bigint not null,
  name text collate "C" not null,
  description text not null,
  kind text not null,
  safety text,
  parameters jsonb,
  definition jsonb not null,
  pinned jsonb,
  status text not null default 'active'::text,
  drift jsonb,
  revision bigint not null default 1,
  created_by identifier not null,
  created_at timestamp with time zone not null default now(),
  updated_at timestamp with time zone not null default now(),
  constraint tool_pkey PRIMARY KEY (id),
  constraint tool_safety_check CHECK (safety = ANY (ARRAY['safe'::text, 'keyed'::text, 'unsafe'::text])),
  constraint tool_status_check CHECK (status = ANY (ARRAY['active'::text, 'drifted'::text]))
);

create table tool_call (
  id identifier not null,
  task_id identifier not null,
  step_index integer not null,
  resolved_by identifier,
  resolved_at timestamp with time zone,
  created_at timestamp with time zone not null default now(),
  project_id bigint,
  agent_id identifier,
  name text,
  safety text not null default 'safe'::text,
  status text not null default 'pending'::text,
  attempt integer not null default 0,
  lease_hash bytea,
  lease_seconds integer,
  lease_until timestamp with time zone,
  claimed_by identifier,
  expires_at timestamp with time zone,
  constraint tool_call_pkey PRIMARY KEY (id),
  constraint tool_call_safety_check CHECK (safety = ANY (ARRAY['safe'::text, 'keyed'::text, 'unsafe'::text])),
  constraint tool_call_status_check CHECK (status = ANY (ARRAY['pending'::text, 'claimed'::text, 'completed'::text, 'failed'::text, 'timed_out'::text, 'canceled'::text, 'unknown'::text]))
);

create table trigger (
  id identifier not null,
  project_id bigint not null,
  agent_id identifier not null,
  name text not null,
  source text not null,
  hmac jsonb,
  filter jsonb not null,
  input jsonb,
  thread_key text,
  action text not null,
  dedupe text,
  priority integer not null,
  timeout_seconds integer,
  budget jsonb not null default '{}'::jsonb,
  metadata jsonb not null default '{}'::jsonb,
  status text not null default 'active'::text,
  address_hash bytea not null,
  previous_address_hash bytea,
  previous_address_until timestamp with time zone,
  secret bytea not null,
  previous_secret bytea,
  previous_secret_until timestamp with time zone,
  accepted bigint not null default 0,
  filtered bigint not null default 0,
  duplicates bigint not null default 0,
  refused bigint not null default 0,
  last_delivery_at timestamp with time zone,
  last_task_id identifier,
  last_refused_at timestamp with time zone,
  refusal_recorded_at timestamp with time zone,
  last_error jsonb,
  created_by identifier not null,
  created_at timestamp with time zone not null default now(),
  updated_at timestamp with time zone not null default now(),
  constraint trigger_pkey PRIMARY KEY (id),
  constraint trigger_address_hash_key UNIQUE (address_hash),
  constraint trigger_action_check CHECK (action = ANY (ARRAY['start'::text, 'message'::text])),
  constraint trigger_status_check CHECK (status = ANY (ARRAY['active'::text, 'paused'::text]))
);

create table trigger_delivery (
  id identifier not null,
  trigger_id identifier not null,
  project_id bigint not null,
  status text not null,
  reason text,
  task_id identifier,
  thread_id identifier,
  sender_id text,
  duplicates bigint not null default 0,
  is_test boolean not null default false,
  replay_of identifier,
  headers jsonb not null,
  body bytea not null,
  created_at timestamp with time zone not null default now(),
  constraint trigger_delivery_pkey PRIMARY KEY (id),
  constraint trigger_delivery_status_check CHECK (status = ANY (ARRAY['accepted'::text, 'filtered'::text]))
);

create table trigger_key (
  trigger_id identifier not null,
  key text collate "C" not null,
  delivery_id identifier not null,
  expires_at timestamp with time zone not null,
  constraint trigger_key_pkey PRIMARY KEY (trigger_id, key)
);

create table trigger_thread (
  trigger_id identifier not null,
  key text collate "C" not null,
  thread_id identifier not null,
  constraint trigger_thread_pkey PRIMARY KEY (trigger_id, key)
);

create table usage_hour (
  org_id identifier not null,
  project_id bigint not null,
  agent_id identifier not null,
  credential_id identifier not null,
  model text not null,
  tool text not null,
  hour timestamp with time zone not null,
  calls bigint not null default 0,
  input_tokens bigint not null default 0,
  output_tokens bigint not null default 0,
  cached_tokens bigint not null default 0,
  cost_usd numeric not null default 0,
  unpriced_calls bigint not null default 0,
  sandbox_seconds double precision not null default 0,
  constraint usage_hour_pkey PRIMARY KEY (project_id, hour, agent_id, credential_id, model, tool)
);

create table webhook (
  id identifier not null,
  org_id identifier not null,
  url text not null,
  events text[] not null,
  filters jsonb not null default '{}'::jsonb,
  secret bytea not null,
  status text not null default 'active'::text,
  created_by identifier not null,
  created_at timestamp with time zone not null default now(),
  updated_at timestamp with time zone not null default now(),
  previous_secret bytea,
  previous_secret_until timestamp with time zone,
  disabled_reason text,
  disabled_at timestamp with time zone,
  failing_since timestamp with time zone,
  slowed_until timestamp with time zone,
  push_task_id identifier,
  push_id text,
  push_scheme text,
  push_headers bytea,
  constraint webhook_pkey PRIMARY KEY (id),
  constraint webhook_disabled_reason_check CHECK (disabled_reason = ANY (ARRAY['requested'::text, 'gone'::text, 'failing'::text])),
  constraint webhook_status_check CHECK (status = ANY (ARRAY['active'::text, 'disabled'::text]))
);

create table webhook_lane (
  webhook_id identifier not null,
  due_at timestamp with time zone,
  owner identifier,
  is_troubled boolean not null default false,
  constraint webhook_lane_pkey PRIMARY KEY (webhook_id)
) with (fillfactor=70);

create table work (
  task_id identifier not null,
  project_id bigint not null,
  agent_id identifier not null,
  queue text not null,
  priority integer not null,
  status text not null,
  offered_at timestamp with time zone not null default now(),
  lease_id identifier,
  attempt integer not null default 0,
  lease_hash bytea,
  lease_seconds integer,
  lease_until timestamp with time zone,
  claimed_at timestamp with time zone,
  claimed_by identifier,
  credential_id identifier,
  worker text,
  holds jsonb not null default '{}'::jsonb,
  delivered jsonb not null default '[]'::jsonb,
  waits_since timestamp with time zone,
  wants jsonb,
  constraint work_pkey PRIMARY KEY (task_id),
  constraint work_status_check CHECK (status = ANY (ARRAY['pending'::text, 'claimed'::text, 'closed'::text]))
);

create table worker (
  id identifier not null,
  instance text not null,
  slots integer not null,
  started_at timestamp with time zone not null default now(),
  seen_at timestamp with time zone not null default now(),
  draining_since timestamp with time zone,
  drained_at timestamp with time zone,
  constraint worker_pkey PRIMARY KEY (id)
);

CREATE OR REPLACE FUNCTION public.task_rollups(agent text, lo timestamp with time zone, hi timestamp with time zone, largest integer)
 RETURNS SETOF task_rollup
 LANGUAGE plpgsql
 STABLE
AS $function$
declare
  h_lo timestamptz := case when largest < 3600 then hi else least(bucket_ceil(3600, lo), hi) end;
  h_hi timestamptz := case when largest < 3600 then hi else greatest(bucket_floor(3600, hi), h_lo) end;
  d_lo timestamptz := case when largest < 86400 then h_hi else least(bucket_ceil(86400, h_lo), h_hi) end;
  d_hi timestamptz := case when largest < 86400 then h_hi else greatest(bucket_floor(86400, h_hi), d_lo) end;
begin
  return query
    select * from task_rollup r where r.agent_id = agent and r.seconds = 60 and r.bucket >= lo and r.bucket < h_lo
    union all select * from task_rollup r where r.agent_id = agent and r.seconds = 60 and r.bucket >= h_hi and r.bucket < hi
    union all select * from task_rollup r where r.agent_id = agent and r.seconds = 3600 and r.bucket >= h_lo and r.bucket < d_lo
    union all select * from task_rollup r where r.agent_id = agent and r.seconds = 3600 and r.bucket >= d_hi and r.bucket < h_hi
    union all select * from task_rollup r where r.agent_id = agent and r.seconds = 86400 and r.bucket >= d_lo and r.bucket < d_hi;
end $function$;

alter table api_key add constraint api_key_org_id_fkey FOREIGN KEY (org_id) REFERENCES organization(id) ON DELETE CASCADE;
alter table api_key add constraint api_key_user_id_fkey FOREIGN KEY (user_id) REFERENCES app_user(id) ON DELETE CASCADE;
alter table api_key_call add constraint api_key_call_key_id_fkey FOREIGN KEY (key_id) REFERENCES api_key(id) ON DELETE CASCADE;
alter table api_key_usage add constraint api_key_usage_key_id_fkey FOREIGN KEY (key_id) REFERENCES api_key(id) ON DELETE CASCADE;
alter table budget add constraint budget_agent_id_fkey FOREIGN KEY (agent_id) REFERENCES agent(id) ON DELETE CASCADE;
alter table budget add constraint budget_key_id_fkey FOREIGN KEY (key_id) REFERENCES api_key(id) ON DELETE CASCADE;
alter table budget add constraint budget_org_id_fkey FOREIGN KEY (org_id) REFERENCES organization(id) ON DELETE CASCADE;
alter table budget add constraint budget_project_id_fkey FOREIGN KEY (project_id) REFERENCES project(id) ON DELETE CASCADE;
alter table credential add constraint credential_project_id_fkey FOREIGN KEY (project_id) REFERENCES project(id) ON DELETE CASCADE;
alter table credential_authorization add constraint credential_authorization_credential_id_fkey FOREIGN KEY (credential_id) REFERENCES credential_oauth(credential_id) ON DELETE CASCADE;
alter table credential_authorization add constraint credential_authorization_user_id_fkey FOREIGN KEY (user_id) REFERENCES app_user(id) ON DELETE CASCADE;
alter table credential_oauth add constraint credential_oauth_credential_id_fkey FOREIGN KEY (credential_id) REFERENCES credential(id) ON DELETE CASCADE;
alter table door_conversation add constraint door_conversation_org_id_fkey FOREIGN KEY (org_id) REFERENCES organization(id) ON DELETE CASCADE;
alter table door_conversation add constraint door_conversation_thread_id_fkey FOREIGN KEY (thread_id) REFERENCES thread(id) ON DELETE SET NULL;
alter table door_thread add constraint door_thread_thread_id_fkey FOREIGN KEY (thread_id) REFERENCES thread(id) ON DELETE CASCADE;
alter table file add constraint file_project_id_fkey FOREIGN KEY (project_id) REFERENCES project(id) ON DELETE CASCADE;
alter table file_piece add constraint file_piece_file_id_fkey FOREIGN KEY (file_id) REFERENCES file(id) ON DELETE CASCADE;
alter table identity add constraint identity_user_id_fkey FOREIGN KEY (user_id) REFERENCES app_user(id) ON DELETE CASCADE;
alter table invitation add constraint invitation_org_id_fkey FOREIGN KEY (org_id) REFERENCES organization(id) ON DELETE CASCADE;
alter table member add constraint member_org_id_fkey FOREIGN KEY (org_id) REFERENCES organization(id) ON DELETE CASCADE;
alter table member add constraint member_user_id_fkey FOREIGN KEY (user_id) REFERENCES app_user(id) ON DELETE CASCADE;
alter table model_provider add constraint model_provider_org_id_fkey FOREIGN KEY (org_id) REFERENCES organization(id) ON DELETE CASCADE;
alter table oauth_client add constraint oauth_client_org_id_fkey FOREIGN KEY (org_id) REFERENCES organization(id) ON DELETE CASCADE;
alter table oauth_consent add constraint oauth_consent_client_id_fkey FOREIGN KEY (client_id) REFERENCES oauth_client(client_id) ON DELETE CASCADE;
alter table oauth_consent add constraint oauth_consent_org_id_fkey FOREIGN KEY (org_id) REFERENCES organization(id) ON DELETE CASCADE;
alter table oauth_consent add constraint oauth_consent_user_id_fkey FOREIGN KEY (user_id) REFERENCES app_user(id) ON DELETE CASCADE;
alter table oauth_grant add constraint oauth_grant_client_id_fkey FOREIGN KEY (client_id) REFERENCES oauth_client(client_id) ON DELETE CASCADE;
alter table oauth_grant add constraint oauth_grant_org_id_fkey FOREIGN KEY (org_id) REFERENCES organization(id) ON DELETE CASCADE;
alter table oauth_grant add constraint oauth_grant_user_id_fkey FOREIGN KEY (user_id) REFERENCES app_user(id) ON DELETE CASCADE;
alter table project add constraint project_org_id_fkey FOREIGN KEY (org_id) REFERENCES organization(id) ON DELETE CASCADE;
alter table schedule add constraint schedule_agent_id_fkey FOREIGN KEY (agent_id) REFERENCES agent(id) ON DELETE CASCADE;
alter table schedule add constraint schedule_thread_id_fkey FOREIGN KEY (thread_id) REFERENCES thread(id) ON DELETE CASCADE;
alter table session add constraint session_user_id_fkey FOREIGN KEY (user_id) REFERENCES app_user(id) ON DELETE CASCADE;
alter table task_file add constraint task_file_file_id_fkey FOREIGN KEY (file_id) REFERENCES file(id) ON DELETE CASCADE;
alter table task_file add constraint task_file_task_id_fkey FOREIGN KEY (task_id) REFERENCES task(id) ON DELETE CASCADE;
alter table test_case add constraint test_case_agent_id_fkey FOREIGN KEY (agent_id) REFERENCES agent(id) ON DELETE CASCADE;
alter table thread add constraint thread_project_id_fkey FOREIGN KEY (project_id) REFERENCES project(id) ON DELETE CASCADE;
alter table tool add constraint tool_project_id_fkey FOREIGN KEY (project_id) REFERENCES project(id) ON DELETE CASCADE;
alter table trigger add constraint trigger_agent_id_fkey FOREIGN KEY (agent_id) REFERENCES agent(id) ON DELETE CASCADE;
alter table trigger_thread add constraint trigger_thread_thread_id_fkey FOREIGN KEY (thread_id) REFERENCES thread(id) ON DELETE CASCADE;
alter table webhook add constraint webhook_org_id_fkey FOREIGN KEY (org_id) REFERENCES organization(id) ON DELETE CASCADE;
alter table webhook_lane add constraint webhook_lane_webhook_id_fkey FOREIGN KEY (webhook_id) REFERENCES webhook(id) ON DELETE CASCADE;

CREATE INDEX agent_created ON agent USING btree (project_id, created_at, id);
CREATE INDEX agent_model ON agent USING btree (project_id, (config ->> 'model'::text), created_at, id);
CREATE INDEX agent_models ON agent USING btree (project_id, name) INCLUDE (id, created_at) WHERE ((config -> 'doors'::text) ->> 'openai'::text) IS DISTINCT FROM 'false'::text;
CREATE UNIQUE INDEX agent_name ON agent USING btree (project_id, name);
CREATE INDEX agent_status_created ON agent USING btree (project_id, status, created_at, id);
CREATE INDEX agent_status_name ON agent USING btree (project_id, status, name, id);
CREATE INDEX agent_tagged ON agent USING gin ((metadata -> 'tags'::text) jsonb_path_ops) WHERE (metadata -> 'tags'::text) IS NOT NULL;
CREATE INDEX agent_text_parts ON agent USING gin (name trigrams.gin_trgm_ops, description trigrams.gin_trgm_ops) WITH (fastupdate='on', gin_pending_list_limit='256');
CREATE INDEX agent_unsettled ON agent USING btree (updated_at) WHERE status = ANY (ARRAY['creating'::text, 'updating'::text]);
CREATE INDEX agent_log_agent ON agent_log USING btree (agent_id, "timestamp" DESC, id DESC);
CREATE INDEX agent_log_level ON agent_log USING btree (agent_id, level, "timestamp" DESC, id DESC);
CREATE INDEX agent_usage_minute ON agent_usage USING btree (minute);
CREATE INDEX api_key_org ON api_key USING btree (org_id, id DESC) WHERE revoked_at IS NULL;
CREATE INDEX api_key_overlap ON api_key USING btree (previous_expires_at) WHERE previous_expires_at IS NOT NULL;
CREATE INDEX api_key_owner ON api_key USING btree (user_id, org_id, id DESC) WHERE revoked_at IS NULL;
CREATE UNIQUE INDEX api_key_previous ON api_key USING btree (previous_hash) WHERE previous_hash IS NOT NULL;
CREATE INDEX api_key_call_age ON api_key_call USING btree (day);
CREATE UNIQUE INDEX app_user_email ON app_user USING btree (lower(email));
CREATE INDEX approval_expiry ON approval USING btree (expires_at) WHERE status = 'pending'::text AND expires_at IS NOT NULL;
CREATE INDEX approval_pending ON approval USING btree (project_id, status, id DESC);
CREATE INDEX approval_project ON approval USING btree (project_id, id DESC);
CREATE INDEX approval_task ON approval USING btree (task_id);
CREATE INDEX audit_action ON audit USING btree (org_id, action, id DESC);
CREATE INDEX audit_actor ON audit USING btree (org_id, actor, id DESC);
CREATE INDEX audit_credential ON audit USING btree (org_id, credential_id, id DESC);
CREATE INDEX audit_ip ON audit USING btree (org_id, ip, id DESC);
CREATE INDEX audit_org ON audit USING btree (org_id, id DESC);
CREATE INDEX audit_request ON audit USING btree (org_id, request_id, id DESC);
CREATE INDEX audit_target ON audit USING btree (org_id, target, id DESC);
CREATE INDEX budget_agent ON budget USING btree (agent_id) WHERE agent_id IS NOT NULL;
CREATE INDEX budget_key ON budget USING btree (key_id) WHERE key_id IS NOT NULL;
CREATE INDEX budget_org ON budget USING btree (org_id, id DESC);
CREATE INDEX budget_project ON budget USING btree (project_id, id DESC);
CREATE UNIQUE INDEX budget_subject ON budget USING btree (subject, period);
CREATE UNIQUE INDEX credential_name ON credential USING btree (project_id, name);
CREATE INDEX credential_project ON credential USING btree (project_id, id DESC);
CREATE INDEX credential_authorization_credential ON credential_authorization USING btree (credential_id);
CREATE INDEX credential_authorization_user ON credential_authorization USING btree (user_id);
CREATE INDEX delegation_open ON delegation USING btree (state, created_at) WHERE state <> 'settled'::text;
CREATE INDEX delegation_parent ON delegation USING btree (parent_task_id);
CREATE INDEX delivery_due ON delivery USING btree (webhook_id, next_attempt_at, id) WHERE status = 'pending'::text;
CREATE INDEX delivery_failed ON delivery USING btree (webhook_id, finished_at, id) WHERE status = 'failed'::text;
CREATE INDEX delivery_webhook ON delivery USING btree (webhook_id, id DESC);
CREATE INDEX door_conversation_org ON door_conversation USING btree (org_id);
CREATE INDEX door_conversation_thread ON door_conversation USING btree (thread_id) WHERE thread_id IS NOT NULL;
CREATE INDEX door_key_task ON door_key USING btree (task_id);
CREATE INDEX door_request_claimable ON door_request USING btree (credential_id, hash) WHERE state <> 'answered'::text;
CREATE INDEX door_response_conversation ON door_response USING btree (conversation) WHERE conversation IS NOT NULL;
CREATE INDEX door_thread_thread ON door_thread USING btree (thread_id);
CREATE INDEX event_org ON event USING btree (org_id, id DESC);
CREATE INDEX event_unmatched ON event USING btree (id) WHERE matched_at IS NULL;
CREATE UNIQUE INDEX file_call ON file USING btree (call_key) WHERE call_key IS NOT NULL;
CREATE INDEX file_project ON file USING btree (project_id, id DESC) INCLUDE (bytes);
CREATE INDEX file_task ON file USING btree (task_id, id) WHERE task_id IS NOT NULL;
CREATE INDEX freed_gate_name ON freed_gate USING btree (gate);
CREATE INDEX idempotency_age ON idempotency USING btree (created_at);
CREATE INDEX identity_user ON identity USING btree (user_id);
CREATE INDEX invitation_open ON invitation USING btree (org_id, created_by) WHERE accepted_at IS NULL AND revoked_at IS NULL;
CREATE INDEX invitation_org ON invitation USING btree (org_id, id DESC);
CREATE INDEX invitation_over ON invitation USING btree (COALESCE(accepted_at, revoked_at, expires_at));
CREATE INDEX log_rollup_bucket ON log_rollup USING btree (seconds, bucket);
CREATE INDEX login_attempt_account ON login_attempt USING btree (account, at DESC);
CREATE INDEX login_attempt_ip ON login_attempt USING btree (ip, at DESC);
CREATE INDEX member_joined ON member USING btree (org_id, joined_at, user_id);
CREATE INDEX member_user ON member USING btree (user_id, joined_at);
CREATE INDEX oauth_artifact_expiry ON oauth_artifact USING btree (expires_at);
CREATE INDEX oauth_artifact_grant ON oauth_artifact USING btree (grant_id) WHERE grant_id IS NOT NULL;
CREATE INDEX oauth_artifact_user_code ON oauth_artifact USING btree ((payload ->> 'userCode'::text)) WHERE kind = 'DeviceCode'::text;
CREATE INDEX oauth_client_document ON oauth_client USING btree (document_until) WHERE document_until IS NOT NULL;
CREATE INDEX oauth_client_org ON oauth_client USING btree (org_id, created_at DESC);
CREATE INDEX oauth_grant_expiry ON oauth_grant USING btree (expires_at);
CREATE INDEX oauth_grant_user ON oauth_grant USING btree (user_id);
CREATE INDEX project_created ON project USING btree (org_id, created_at, id);
CREATE UNIQUE INDEX project_name ON project USING btree (org_id, lower(name));
CREATE INDEX project_name_parts ON project USING gin (name trigrams.gin_trgm_ops) WITH (fastupdate=off);
CREATE INDEX project_sorted ON project USING btree (org_id, name, id);
CREATE INDEX project_updated ON project USING btree (org_id, updated_at, id);
CREATE INDEX refusal_hour_age ON refusal_hour USING btree (hour);
CREATE INDEX schedule_agent ON schedule USING btree (agent_id);
CREATE INDEX schedule_due ON schedule USING btree (next_run_at) WHERE status = 'active'::text;
CREATE INDEX schedule_project ON schedule USING btree (project_id, id DESC);
CREATE INDEX schedule_thread ON schedule USING btree (thread_id) WHERE thread_id IS NOT NULL;
CREATE INDEX session_owner ON session USING btree (user_id);
CREATE INDEX task_agent ON task USING btree (agent_id, id DESC);
CREATE INDEX task_agent_finished ON task USING btree (agent_id, finished_at) WHERE finished_at IS NOT NULL;
CREATE INDEX task_agent_status ON task USING btree (agent_id, status, id DESC);
CREATE INDEX task_backlog ON task USING btree (project_id, priority DESC, id) WHERE backlog AND status = 'queued'::text AND job_id IS NULL;
CREATE INDEX task_budget ON task USING btree (id) WHERE status = 'waiting'::text AND job_id IS NULL AND (wait ->> 'reason'::text) = 'budget'::text;
CREATE INDEX task_cancel ON task USING btree (cancel_requested_at) WHERE cancel_requested_at IS NOT NULL AND status = 'running'::text;
CREATE INDEX task_credential ON task USING btree (id) WHERE status = 'waiting'::text AND job_id IS NULL AND (wait ->> 'reason'::text) = 'credential'::text;
CREATE INDEX task_door ON task USING btree (project_id, (metadata #>> '{door,kind}'::text[]), id) WHERE (metadata #>> '{door,kind}'::text[]) IS NOT NULL;
CREATE INDEX task_due ON task USING btree (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX task_expiry ON task USING btree (expires_at) WHERE expires_at IS NOT NULL AND (status = ANY (ARRAY['queued'::text, 'waiting'::text]));
CREATE INDEX task_finished ON task USING btree (finished_at, id) WHERE finished_at IS NOT NULL;
CREATE INDEX task_key_held ON task USING btree (project_id, concurrency_key) WHERE concurrency_key IS NOT NULL AND finished_at IS NULL AND (status <> 'queued'::text OR job_id IS NOT NULL);
CREATE INDEX task_key_parked ON task USING btree (project_id, concurrency_key, priority DESC, id) WHERE concurrency_key IS NOT NULL AND status = 'queued'::text AND job_id IS NULL;
CREATE INDEX task_of_schedule ON task USING btree (schedule_id, id) WHERE schedule_id IS NOT NULL;
CREATE INDEX task_open ON task USING btree (status) WHERE finished_at IS NULL;
CREATE INDEX task_own_metadata ON task USING gin ((metadata - 'door'::text) jsonb_path_ops) WHERE finished_at IS NOT NULL AND (metadata - 'door'::text) <> '{}'::jsonb;
CREATE INDEX task_parent ON task USING btree (parent_task_id) WHERE parent_task_id IS NOT NULL;
CREATE INDEX task_parked ON task USING btree (agent_id, priority DESC, id) WHERE job_id IS NULL AND (status = 'queued'::text AND NOT backlog OR status = 'waiting'::text AND (slot = 'wanted'::text OR ((wait ->> 'reason'::text) = ANY (ARRAY['agent_paused'::text, 'agent_stopped'::text]))));
CREATE INDEX task_project ON task USING btree (project_id, id DESC);
CREATE INDEX task_project_status ON task USING btree (project_id, status, id DESC);
CREATE INDEX task_root ON task USING btree (root_task_id) WHERE root_task_id IS NOT NULL;
CREATE INDEX task_schedule ON task USING btree (schedule_id) WHERE schedule_id IS NOT NULL AND (status = ANY (ARRAY['queued'::text, 'running'::text, 'waiting'::text]));
CREATE INDEX task_slot ON task USING btree (agent_id) WHERE slot = 'held'::text;
CREATE UNIQUE INDEX task_thread ON task USING btree (thread_id, thread_position) WHERE thread_id IS NOT NULL;
CREATE INDEX task_thread_open ON task USING btree (thread_id, thread_position) WHERE thread_id IS NOT NULL AND finished_at IS NULL;
CREATE INDEX task_worker ON task USING btree (worker_id) WHERE status = 'running'::text;
CREATE INDEX task_event_xid ON task_event USING btree (xid);
CREATE INDEX task_file_file ON task_file USING btree (file_id);
CREATE INDEX task_message_pending ON task_message USING btree (task_id) WHERE before_step IS NULL;
CREATE INDEX task_rollup_bucket ON task_rollup USING btree (seconds, bucket);
CREATE INDEX task_step_agent ON task_step USING btree (agent_id, started_at);
CREATE INDEX task_total_agent ON task_total USING btree (agent_id) WHERE agent_id::text <> ''::text;
CREATE INDEX test_case_agent ON test_case USING btree (agent_id, id DESC);
CREATE UNIQUE INDEX test_case_name ON test_case USING btree (agent_id, name);
CREATE INDEX thread_agent ON thread USING btree (agent_id, id DESC);
CREATE INDEX thread_project ON thread USING btree (project_id, id DESC);
CREATE UNIQUE INDEX tool_name ON tool USING btree (project_id, name);
CREATE INDEX tool_project ON tool USING btree (project_id, id DESC);
CREATE INDEX tool_call_leases ON tool_call USING btree (lease_until) WHERE status = 'claimed'::text;
CREATE INDEX tool_call_pending ON tool_call USING btree (project_id, name, id) WHERE status = 'pending'::text;
CREATE INDEX tool_call_project ON tool_call USING btree (project_id, id);
CREATE INDEX tool_call_task ON tool_call USING btree (task_id);
CREATE INDEX trigger_agent ON trigger USING btree (agent_id);
CREATE INDEX trigger_previous_address ON trigger USING btree (previous_address_hash) WHERE previous_address_hash IS NOT NULL;
CREATE INDEX trigger_project ON trigger USING btree (project_id, id DESC);
CREATE INDEX trigger_delivery_status ON trigger_delivery USING btree (trigger_id, status, id DESC);
CREATE INDEX trigger_delivery_trigger ON trigger_delivery USING btree (trigger_id, id DESC);
CREATE INDEX trigger_key_expiry ON trigger_key USING btree (expires_at);
CREATE INDEX trigger_thread_thread ON trigger_thread USING btree (thread_id);
CREATE INDEX usage_hour_age ON usage_hour USING btree (hour);
CREATE INDEX usage_hour_credential ON usage_hour USING btree (credential_id, hour);
CREATE INDEX usage_hour_org ON usage_hour USING btree (org_id, hour);
CREATE INDEX webhook_active ON webhook USING btree (org_id) WHERE status = 'active'::text AND push_task_id IS NULL;
CREATE INDEX webhook_of_task_events ON webhook USING btree (org_id) WHERE status = 'active'::text AND events && '{task.*,approval.*,budget.*,task.created,task.started,task.waiting,task.resumed,task.retrying,task.completed,task.failed,task.canceled,task.expired,tool.requested,tool.resolved,approval.requested,approval.resolved,approval.expired,budget.warning,budget.reached}'::text[];
CREATE INDEX webhook_of_tasks ON webhook USING btree (org_id) WHERE status = 'active'::text AND events && '{task.*,approval.*,budget.*,task.created,task.started,task.waiting,task.resumed,task.retrying,task.completed,task.failed,task.canceled,task.expired,approval.requested,approval.resolved,approval.expired,budget.warning,budget.reached}'::text[];
CREATE INDEX webhook_org ON webhook USING btree (org_id, id DESC);
CREATE INDEX webhook_own ON webhook USING btree (org_id, id DESC) WHERE push_task_id IS NULL;
CREATE UNIQUE INDEX webhook_push ON webhook USING btree (push_task_id, push_id) WHERE push_task_id IS NOT NULL;
CREATE INDEX webhook_lane_due ON webhook_lane USING btree (is_troubled, due_at) WHERE owner IS NULL AND due_at IS NOT NULL;
CREATE INDEX webhook_lane_owner ON webhook_lane USING btree (owner) WHERE owner IS NOT NULL;
CREATE INDEX work_holds ON work USING btree (task_id) WHERE holds <> '{}'::jsonb;
CREATE UNIQUE INDEX work_lease ON work USING btree (lease_hash) WHERE lease_hash IS NOT NULL;
CREATE INDEX work_leases ON work USING btree (lease_until) WHERE status = 'claimed'::text;
CREATE INDEX work_pending ON work USING btree (project_id, queue, priority DESC, task_id) WHERE status = 'pending'::text;

CREATE TRIGGER agent_gone AFTER DELETE ON agent REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION count_agents_gone();
CREATE TRIGGER agent_made AFTER INSERT ON agent REFERENCING NEW TABLE AS made FOR EACH STATEMENT EXECUTE FUNCTION count_agents_made();
CREATE TRIGGER agent_moved AFTER UPDATE OF status, project_id ON agent FOR EACH ROW WHEN (old.status <> new.status OR old.project_id <> new.project_id) EXECUTE FUNCTION count_agent_moved();
CREATE TRIGGER file_gone AFTER DELETE ON file REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION file_gone();
CREATE TRIGGER project_gone AFTER DELETE ON project REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION count_projects_gone();
CREATE TRIGGER project_made AFTER INSERT ON project REFERENCING NEW TABLE AS made FOR EACH STATEMENT EXECUTE FUNCTION count_projects_made();
CREATE TRIGGER project_moved AFTER UPDATE OF org_id ON project FOR EACH ROW WHEN (old.org_id::text <> new.org_id::text) EXECUTE FUNCTION count_project_moved();
CREATE TRIGGER task_gone AFTER DELETE ON task REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION take_off_task_totals();
