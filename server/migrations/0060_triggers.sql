-- runs-with: 0044
-- Triggers: addresses to which other systems post deliveries, each of which gives an agent a task.

create table trigger (
  id identifier primary key,
  project_id bigint not null,
  agent_id identifier not null references agent (id) on delete cascade,
  name text not null,
  source text not null,
  -- The form of a signature by HMAC, where the source leaves it to the trigger.
  hmac jsonb,
  filter jsonb not null,
  -- A template: text, or an object of templates. Null stands for the whole body.
  input jsonb,
  thread_key text,
  action text not null check (action in ('start', 'message')),
  dedupe text,
  priority int not null,
  timeout_seconds int,
  budget jsonb not null default '{}',
  metadata jsonb not null default '{}',
  status text not null default 'active' check (status in ('active', 'paused')),
  -- SHA-256 of the secret part of the address.
  address_hash bytea not null unique,
  previous_address_hash bytea,
  previous_address_until timestamptz,
  -- Encrypted.
  secret bytea not null,
  previous_secret bytea,
  previous_secret_until timestamptz,
  accepted bigint not null default 0,
  filtered bigint not null default 0,
  duplicates bigint not null default 0,
  refused bigint not null default 0,
  last_delivery_at timestamptz,
  last_task_id identifier,
  last_refused_at timestamptz,
  -- When a refused request was last written into the audit log.
  refusal_recorded_at timestamptz,
  last_error jsonb,
  created_by identifier not null,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now()
);
create index trigger_project on trigger (project_id, id desc);
create index trigger_agent on trigger (agent_id);
create index trigger_previous_address on trigger (previous_address_hash) where previous_address_hash is not null;

-- Genuine deliveries, and what became of them. Those of a deleted trigger go with their age: it may have too many for one statement.
create table trigger_delivery (
  id identifier primary key,
  trigger_id identifier not null,
  project_id bigint not null,
  status text not null check (status in ('accepted', 'filtered')),
  reason text,
  task_id identifier,
  thread_id identifier,
  sender_id text,
  duplicates bigint not null default 0,
  is_test boolean not null default false,
  replay_of identifier,
  headers jsonb not null,
  body bytea not null,
  created_at timestamptz not null default now()
);
create index trigger_delivery_trigger on trigger_delivery (trigger_id, id desc);
create index trigger_delivery_status on trigger_delivery (trigger_id, status, id desc);

-- What tells a repeated delivery: the identifier that its sender gave it, or the hash of its bytes.
create table trigger_key (
  trigger_id identifier not null,
  key text collate "C" not null,
  delivery_id identifier not null,
  expires_at timestamptz not null,
  primary key (trigger_id, key)
);
create index trigger_key_expiry on trigger_key (expires_at);

-- The threads of a trigger, by their keys.
create table trigger_thread (
  trigger_id identifier not null,
  key text collate "C" not null,
  thread_id identifier not null references thread (id) on delete cascade,
  primary key (trigger_id, key)
);
create index trigger_thread_thread on trigger_thread (thread_id);
