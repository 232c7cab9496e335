-- runs-with: 0015
-- A task may have a schema of its own for its output; null where the agent's counts.
alter table task add column output_schema jsonb;
-- The turn of a model as its provider wrote it, encrypted: reasoning goes back to the provider and is shown to nobody.
alter table task_step add column turn bytea;
-- A conversation is compacted by a step of its own. All rows meet the narrower condition that was there before.
alter table task_step drop constraint task_step_type_check;
alter table task_step add constraint task_step_type_check
  check (type in ('model_call', 'tool_call', 'approval', 'wait', 'compaction')) not valid;
-- What was changed or left out of an agent's calls because its model does not take it: told once for each version.
create table model_warning (
  agent_id identifier not null,
  version int not null,
  warning text not null,
  warned_at timestamptz not null default now(),
  primary key (agent_id, version, warning)
);
