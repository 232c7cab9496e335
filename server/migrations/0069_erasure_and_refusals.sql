-- runs-with: 0068
-- Tasks are erased by what their metadata contain. Only ended ones are, so a task enters the index once, and none without metadata.
select build_index('task', 'task_metadata', 'using gin (metadata jsonb_path_ops) where finished_at is not null and metadata <> ''{}''');
-- Renewals of a credential because a server refused its token (401), and since when they are counted.
alter table credential_oauth add column refusals integer not null default 0;
alter table credential_oauth add column refusals_since timestamptz;
