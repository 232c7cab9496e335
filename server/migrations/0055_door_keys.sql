-- runs-with: 0044
-- What the doors of A2A and AG-UI need: identifiers of the client that name what it has sent, and the threads that its own
-- identifiers stand for.

-- A message or a run by its client's own identifier: sent again it is the same. `hash` tells whether it says the same.
create table door_key (
  door text not null check (door in ('a2a', 'agui')),
  credential_id identifier not null,
  key text not null,
  hash bytea not null,
  response_id identifier not null,
  task_id identifier not null,
  created_at timestamptz not null default now(),
  primary key (credential_id, door, key)
);
create index door_key_task on door_key (task_id);

-- A thread by its client's own identifier. `owner` is the organization, or the credential where each has its own.
create table door_thread (
  door text not null check (door in ('a2a', 'agui')),
  owner identifier not null,
  key text not null,
  agent_id identifier not null,
  thread_id identifier not null references thread (id) on delete cascade,
  created_at timestamptz not null default now(),
  primary key (owner, door, agent_id, key)
);
create index door_thread_thread on door_thread (thread_id);
