-- runs-with: 0034
-- What doors of other protocols need: caller tools of a task, calls that wait for their callers, segments of tasks, requests
-- that may be repeated, conversations that have no agent yet, and threads that go on from the middle of another.

-- What the caller of a task asked for it alone: tools on the caller's side, and dials of its model calls.
alter table task add column caller jsonb;

-- Where a call of a tool on the caller's side is in the journal. Its state and its result are in its step alone.
create table tool_call (
  id identifier primary key,
  task_id identifier not null,
  step_index int not null,
  resolved_by identifier,
  resolved_at timestamptz,
  created_at timestamptz not null default now()
);
create index tool_call_task on tool_call (task_id);

-- A response of a door is a segment of a task: it begins with the event `first_sequence`.
create table door_response (
  id identifier primary key,
  project_id bigint not null references project (id) on delete cascade,
  task_id identifier not null,
  ordinal int not null,
  first_sequence int not null,
  -- What was asked for, as far as it is shown again.
  request jsonb not null,
  -- The items of the request, in the words of the protocol.
  input jsonb not null,
  conversation identifier,
  previous identifier,
  store boolean not null,
  -- The credential may resolve approvals, so that a wait for one ends the segment.
  resolves boolean not null,
  deleted_at timestamptz,
  created_at timestamptz not null default now(),
  unique (task_id, ordinal)
);

create index door_response_conversation on door_response (conversation) where conversation is not null;
create index door_response_project on door_response (project_id);

-- A creating request as it was sent, for clients that repeat it without a key: see decision 0029.
create table door_request (
  id bigint generated always as identity primary key,
  credential_id identifier not null,
  hash bytea not null,
  response_id identifier not null,
  task_id identifier not null,
  -- `open`: its connection is served by `process_id`. `broken`: that ended before the answer was written to its end.
  state text not null check (state in ('open', 'broken', 'answered')),
  process_id identifier not null,
  created_at timestamptz not null default now()
);
create index door_request_hash on door_request (credential_id, hash, created_at);
create index door_request_task on door_request (task_id);
create index door_request_age on door_request (created_at);

-- A conversation of a door: it gets an agent, and with it a thread, by its first response.
create table door_conversation (
  id identifier primary key,
  org_id identifier not null references organization (id) on delete cascade,
  thread_id identifier references thread (id) on delete set null,
  -- Items that no response has read yet.
  items jsonb not null default '[]',
  metadata jsonb not null default '{}',
  created_by identifier not null,
  deleted_at timestamptz,
  created_at timestamptz not null default now()
);
create index door_conversation_org on door_conversation (org_id);
create index door_conversation_thread on door_conversation (thread_id) where thread_id is not null;

-- A thread that goes on from another: it remembers that one's tasks up to a position.
alter table thread add column parent_thread_id identifier;
alter table thread add column parent_position int;
-- Made by a door to continue a response; lists leave it out.
alter table thread add column hidden boolean not null default false;
