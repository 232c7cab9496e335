-- runs-with: 0044
-- Agents give tasks to other agents: a task knows the task that it was delegated by, and the one at the root.

alter table task
  add column parent_task_id identifier,
  add column root_task_id identifier,
  add column depth int not null default 0,
  -- What the tasks below it have used, as far as their results have come.
  add column children_usage jsonb;
create index task_parent on task (parent_task_id) where parent_task_id is not null;
create index task_root on task (root_task_id) where root_task_id is not null;

-- A call that becomes a task of another agent. `requested`: the task is to be created. `created`: its end is waited for.
-- `refused`: no task was created, because of `refusal`. `settled`: the calling task has its result.
create table delegation (
  child_task_id identifier primary key,
  parent_task_id identifier not null,
  step_index int not null,
  project_id bigint not null,
  agent_id identifier not null,
  agent_version int,
  depth_max int not null,
  -- Null once the task is created: then it is there.
  input jsonb,
  state text not null default 'requested' check (state in ('requested', 'created', 'refused', 'settled')),
  refusal jsonb,
  created_at timestamptz not null default now()
);
create index delegation_parent on delegation (parent_task_id);
create index delegation_open on delegation (state, created_at) where state <> 'settled';

-- The budget of a task at the root, which the tasks below it spend too.
alter table budget drop constraint budget_scope_check;
alter table budget add constraint budget_scope_check check (scope in ('agent', 'project', 'api_key', 'organization', 'task'));
