-- runs-with: 0015
-- Files that callers upload and tools make. A file is visible once it is whole: until then it has no digest.
create table file (
  id identifier primary key,
  project_id bigint not null references project on delete cascade,
  name text not null,
  media_type text not null,
  -- As far as it is stored.
  bytes bigint not null default 0,
  sha256 text,
  -- Where its bytes are.
  store text not null default 'database' check (store in ('database', 's3')),
  -- The task whose tools made it, or with whose input it came.
  task_id identifier,
  -- The call and the place in it that made it: a call that is repeated makes no second one.
  call_key text,
  is_artifact boolean not null default false,
  -- When a task named it last; it goes with the last task that does.
  named_at timestamptz,
  created_by identifier not null,
  created_at timestamptz not null default now()
);
create index file_project on file (project_id, id desc) include (bytes);
create index file_task on file (task_id, id) where task_id is not null;
create unique index file_call on file (call_key) where call_key is not null;

-- The bytes of a file in the database, 1 MiB a row but for the last.
create table file_piece (
  file_id identifier not null references file on delete cascade,
  index int not null,
  bytes bytea not null,
  primary key (file_id, index)
);
-- Pictures and documents are compressed already.
alter table file_piece alter column bytes set storage external;

-- Which tasks name which files.
create table task_file (
  task_id identifier not null references task on delete cascade,
  file_id identifier not null references file on delete cascade,
  primary key (task_id, file_id)
);
create index task_file_file on task_file (file_id);

-- Objects whose rows are gone, to be removed from the object store.
create table file_object_left (
  file_id identifier primary key
);
create function file_gone() returns trigger language plpgsql as $$
begin
  insert into file_object_left (file_id) select id from gone where store = 's3' on conflict do nothing;
  return null;
end $$;
create trigger file_gone after delete on file referencing old table as gone for each statement execute function file_gone();
