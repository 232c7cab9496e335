-- runs-with: 0075
-- A chat completion writes fewer index entries.

-- Its request is written twice, so each index costs two entries. An equal request looks by what it is; the process that answers names the
-- same, and the sweep reads all, because rows are few: they stay for half an hour.
drop index door_request_hash;
drop index door_request_task;
drop index door_request_age;
alter table door_request drop constraint door_request_pkey;
alter table door_request add primary key (credential_id, hash, id);

-- A response goes with its task: a project is deleted only after its agents, and the purge of an agent takes its tasks. The check of the key
-- locks the project's row.
alter table door_response drop constraint door_response_project_id_fkey;
drop index door_response_project;

-- Every task that came by a door has that in its metadata; tasks are erased by what their callers wrote there.
drop index if exists task_metadata;
delete from index_to_build where name = 'task_metadata';
select build_index('task', 'task_own_metadata',
  'using gin ((metadata - ''door'') jsonb_path_ops) where finished_at is not null and metadata - ''door'' <> ''{}''');
