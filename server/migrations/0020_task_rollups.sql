-- runs-with: 0015
-- What an agent's ended tasks sum up to, by the minute, hour and day (UTC) in which they ended: so that metrics and statistics
-- take no longer with five million tasks than with five thousand. Made in batches by the maintenance; what ended since is read
-- from the tasks themselves, in the same statement, so that nothing is missing or counted twice at any moment.
create table task_rollup (
  agent_id identifier not null,
  seconds int not null check (seconds in (60, 3600, 86400)),
  bucket timestamptz not null,
  completed bigint not null,
  failed bigint not null,
  canceled bigint not null,
  -- Those that began and were not canceled, and how long they took from their start.
  timed bigint not null,
  microseconds bigint not null,
  -- All of them, from their start or, where they never began, from their creation.
  all_microseconds bigint not null,
  first_created_at timestamptz not null,
  -- How many of the timed ones took about so long; see duration_key.
  keys smallint[] not null,
  counts bigint[] not null,
  primary key (agent_id, seconds, bucket)
);
create index task_rollup_bucket on task_rollup (seconds, bucket);

-- Until when tasks are summed up, exclusive and on a full minute; no row before the first time.
create table task_rollup_state (
  only_one boolean primary key default true check (only_one),
  rolled_until timestamptz not null
);

-- Durations within 2 % of each other have one key; duration_of is within 1 % of all of them.
create function duration_key(seconds float8) returns smallint language sql immutable parallel safe return
  case when seconds < 0.000001 then -1000 else ceil(ln(seconds) / ln(1.02::float8)) end::smallint;
create function duration_of(key smallint) returns float8 language sql immutable parallel safe return
  case when key = -1000 then 0 else 2 * power(1.02::float8, key) / 2.02 end;

create function bucket_floor(seconds int, at timestamptz) returns timestamptz language sql immutable parallel safe return
  date_bin(make_interval(secs => seconds), at, 'epoch');
create function bucket_ceil(seconds int, at timestamptz) returns timestamptz language sql immutable parallel safe return
  case when bucket_floor(seconds, at) = at then at else bucket_floor(seconds, at) + make_interval(secs => seconds) end;

-- Roll-ups that together are an agent's period between two full minutes, none longer than `largest`.
create function task_rollups(agent text, lo timestamptz, hi timestamptz, largest int) returns setof task_rollup language plpgsql stable as $$
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
end $$;

-- Sums up the next tasks, those of an hour at most, and tells whether there is more to do. Only of minutes in which no task
-- can end any more: a task ends at the moment at which the transaction began that ends it, so none of those may be open.
create function roll_up_tasks() returns boolean language plpgsql as $$
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
end $$;
