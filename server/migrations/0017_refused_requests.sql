-- runs-with: 0015
-- How often requests were refused, told by the same update that refuses: in the running hour of the row, and in the one before.
alter table rate_window
  add column hour_refused bigint not null default 0,
  add column previous_hour_refused bigint not null default 0,
  add column refused_at timestamptz;
