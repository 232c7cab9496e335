-- runs-with: 0015
-- The logs of all agents of a project as one, the newest entries first, from `since` to before `until`, of one level or (null) of all:
-- how many there are, and between which moments a page lies, that leaves out the newest `skip` and has up to `take`. It is from `lo`
-- to before `hi`, and `newer` entries are left out by that already; `hi` is null where the page is empty. Found by the sums that
-- `roll_up_logs` keeps, to a quarter of an hour: so a page takes no longer far down in ten million entries than at their top, and
-- entries need no index by project.
create function project_log_page(project bigint, of_level text, since timestamptz, until timestamptz, skip bigint, take bigint,
  out total bigint, out lo timestamptz, out hi timestamptz, out newer bigint) language plpgsql stable
set plan_cache_mode = force_custom_plan as $$
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
end $$;
