-- Threads, and what keeps a task from being sent to the workers while it might run: a gate (docs/guides/tasks.md).

-- A removed agent's threads are purged in the background like its tasks: a cascade would hold up its deletion.
alter table thread drop constraint thread_agent_id_fkey;
create index thread_agent on thread (agent_id, id desc);

-- Read with every lock of a task, which must not unpack the whole configuration.
alter table agent add column max_concurrent_tasks int
  generated always as ((config->>'max_concurrent_tasks')::int) stored;

alter table task
  -- Where it stands in its thread, from 1, in the order of the commits of their creation.
  add column thread_position int,
  -- When it is to be looked at again: of a task that is due much later. Null once that was done.
  add column due_at timestamptz,
  -- Whether it holds one of its agent's `max_concurrent_tasks`, or goes on as soon as it gets one.
  add column slot text check (slot in ('held', 'wanted')),
  -- Whether it waits for room among its project's jobs in the queue.
  add column backlog boolean not null default false;

create unique index task_thread on task (thread_id, thread_position) where thread_id is not null;
create index task_thread_open on task (thread_id, thread_position) where thread_id is not null and finished_at is null;
create index task_key_held on task (project_id, concurrency_key)
  where concurrency_key is not null and finished_at is null and (status <> 'queued' or job_id is not null);
create index task_key_parked on task (project_id, concurrency_key, priority desc, id)
  where concurrency_key is not null and status = 'queued' and job_id is null;
create index task_slot on task (agent_id) where slot = 'held';

-- Tasks without a job that may have one as soon as their agent works and their gates are open.
drop index task_parked;
create index task_parked on task (agent_id, priority desc, id)
  where job_id is null and ((status = 'queued' and not backlog)
    or (status = 'waiting' and (slot = 'wanted' or wait->>'reason' in ('agent_paused', 'agent_stopped'))));
create index task_backlog on task (project_id, priority desc, id) where backlog and status = 'queued' and job_id is null;
drop index task_due;
create index task_due on task (due_at) where due_at is not null;

-- Gates that were freed and not dispatched yet. A process that dies between the two leaves its rows to the others.
create table freed_gate (
  id bigint generated always as identity primary key,
  gate text not null,
  freed_at timestamptz not null default now()
);
create index freed_gate_name on freed_gate (gate);
