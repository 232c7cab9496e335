-- Schedules: an agent is given a task again and again, by cron and time zone.

create table schedule (
  id identifier primary key,
  project_id bigint not null,
  -- A schedule goes with its agent, and with the conversation that it writes into.
  agent_id identifier not null references agent on delete cascade,
  thread_id identifier references thread on delete cascade,
  name text not null,
  cron text not null,
  time_zone text not null,
  -- What each task is created with.
  input jsonb not null,
  priority int not null,
  timeout_seconds int,
  budget jsonb not null default '{}',
  metadata jsonb not null default '{}',
  status text not null default 'active' check (status in ('active', 'paused')),
  -- What happens when it is due and an earlier task of it is still open.
  overlap text not null check (overlap in ('skip', 'queue')),
  -- What happens to due times that passed while nobody looked.
  catch_up text not null check (catch_up in ('once', 'none')),
  -- Null while it is paused. Whoever moves it on from the value it saw creates the task of that due time.
  next_run_at timestamptz,
  last_run_at timestamptz,
  last_task_id identifier,
  tasks_created bigint not null default 0,
  skipped bigint not null default 0,
  -- Why the last due time brought no task: `{code, message, at}`; null again with the next task.
  last_error jsonb,
  created_by identifier not null,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  check ((status = 'paused') = (next_run_at is null))
);
create index schedule_project on schedule (project_id, id desc);
create index schedule_agent on schedule (agent_id);
create index schedule_thread on schedule (thread_id) where thread_id is not null;
create index schedule_due on schedule (next_run_at) where status = 'active';

-- Whether a schedule has an open task.
create index task_schedule on task (schedule_id) where schedule_id is not null and status in ('queued', 'running', 'waiting');
