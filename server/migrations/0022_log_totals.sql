-- runs-with: 0015
-- Entries of agents' logs by the quarter of an hour and the day (UTC): so that the total of a log takes no longer with ten
-- million entries than with ten thousand. Made by the maintenance; what came since is counted from the log itself, in the same
-- statement, so that nothing is missing or counted twice at any moment.
create table log_rollup (
  agent_id identifier not null,
  seconds int not null check (seconds in (900, 86400)),
  bucket timestamptz not null,
  debug bigint not null,
  info bigint not null,
  warn bigint not null,
  error bigint not null,
  primary key (agent_id, seconds, bucket)
);
create index log_rollup_bucket on log_rollup (seconds, bucket);

-- Until when entries are counted, exclusive and on a full quarter of an hour; no row before the first time. What is before
-- `kept_from`, always a day, has outlived its retention: sums of it may still be there.
create table log_rollup_state (
  only_one boolean primary key default true check (only_one),
  rolled_until timestamptz not null,
  kept_from timestamptz not null default '-infinity'
);

-- Entries of an agent's log from `since` to before `until`, of one level or (null) of all. Exact. Its statements are planned
-- once a connection: with a partition a day, planning takes longer than counting.
create function count_log(agent text, of_level text, since timestamptz, until timestamptz) returns bigint language plpgsql stable
set plan_cache_mode = force_generic_plan as $$
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
end $$;

-- Counts the next entries, those of an hour at most, and tells whether there is more to do. Only of quarters in which no entry
-- can be written any more: an entry has the time of its writing, so none is older than the transaction that writes it.
create function roll_up_logs() returns boolean language plpgsql as $$
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
end $$;
