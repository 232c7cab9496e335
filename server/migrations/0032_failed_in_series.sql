-- runs-with: 0015
-- A series also says how many tasks failed. Builds that do not read that take the columns by name.
drop function task_series(text, timestamptz, timestamptz, int);
create function task_series(agent text, lo timestamptz, hi timestamptz, largest int)
returns table (bucket timestamptz, completed bigint, failed bigint, timed bigint, microseconds bigint) language plpgsql stable rows 2000 as $$
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
end $$;
