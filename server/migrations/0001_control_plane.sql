-- Identity, projects, agents, tasks and their traces.
--
-- Identifiers are `prefix_` + 26 characters of Crockford base32: 48 bits of time, 80 of chance. They sort by time
-- under the collation "C", so tables that only grow are partitioned by identifier, and a partition is dropped when
-- its retention ends.

-- The first identifier that could have been made at `at`.
create function id_floor(prefix text, at timestamptz) returns text language plpgsql immutable as $$
declare
  rest bigint := floor(extract(epoch from at) * 1000)::bigint;
  digits text := '';
begin
  for i in 1..10 loop
    digits := substr('0123456789abcdefghjkmnpqrstvwxyz', (rest % 32)::int + 1, 1) || digits;
    rest := rest / 32;
  end loop;
  return prefix || '_' || digits || '0000000000000000';
end $$;

create domain identifier as text collate "C";

create table app_user (
  id identifier primary key,
  email text not null,
  name text not null,
  avatar_url text not null default '',
  email_verified boolean not null default false,
  plan text not null default 'free' check (plan in ('free', 'team', 'enterprise')),
  password_hash text,
  disabled_at timestamptz,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now()
);
create unique index app_user_email on app_user (lower(email));

create table identity (
  issuer text not null,
  subject text not null,
  user_id identifier not null references app_user on delete cascade,
  primary key (issuer, subject)
);

create table organization (
  id identifier primary key,
  name text not null,
  created_at timestamptz not null default now()
);

create table member (
  org_id identifier not null references organization on delete cascade,
  user_id identifier not null references app_user on delete cascade,
  role text not null check (role in ('owner', 'admin', 'member', 'viewer')),
  joined_at timestamptz not null default now(),
  primary key (org_id, user_id)
);
create index member_user on member (user_id, joined_at);

-- A cookie sign-in. The cookie carries 256 random bits; only their SHA-256 is kept.
create table session (
  id identifier primary key,
  secret_hash bytea not null unique,
  user_id identifier not null references app_user on delete cascade,
  created_at timestamptz not null default now(),
  last_activity timestamptz not null default now(),
  idle_expires_at timestamptz not null,
  expires_at timestamptz not null,
  ip text not null,
  user_agent text not null
);
create index session_owner on session (user_id);

create table api_key (
  id identifier primary key,
  hash bytea not null unique,
  preview text not null,
  org_id identifier not null references organization on delete cascade,
  user_id identifier not null references app_user on delete cascade,
  name text not null,
  description text not null default '',
  scopes text[] not null,
  created_at timestamptz not null default now(),
  updated_at timestamptz,
  expires_at timestamptz,
  revoked_at timestamptz
);
create index api_key_owner on api_key (user_id, org_id, id desc) where revoked_at is null;

-- One row a key and hour. `hour` = -infinity holds what was folded out of older hours.
create table api_key_usage (
  key_id identifier not null references api_key on delete cascade,
  hour timestamptz not null,
  requests bigint not null default 0,
  last_at timestamptz not null,
  primary key (key_id, hour)
);

-- Fixed windows, aligned to UTC. A row holds both windows of its bucket, so that the two are checked and counted by one
-- update of one row. Unlogged: a crash of PostgreSQL starts the windows anew, and nothing else.
create unlogged table rate_window (
  subject text not null,
  bucket text not null,
  hour_start timestamptz not null,
  hour_used bigint not null,
  minute_start timestamptz not null,
  minute_used bigint not null,
  admitted boolean not null,
  primary key (subject, bucket)
);

-- Tokens that agents used on behalf of a credential, an hour a row (decision D90).
create table token_usage (
  subject text not null,
  hour timestamptz not null,
  tokens bigint not null,
  primary key (subject, hour)
);

create table login_attempt (
  id bigint generated always as identity primary key,
  account text not null,
  ip text not null,
  at timestamptz not null default now()
);
create index login_attempt_account on login_attempt (account, at desc);
create index login_attempt_ip on login_attempt (ip, at desc);

create table oauth_client (
  client_id text primary key,
  org_id identifier not null references organization on delete cascade,
  name text not null,
  secret_hash text,
  redirect_uris text[] not null,
  scopes text[] not null,
  native boolean not null default false,
  created_at timestamptz not null default now(),
  updated_at timestamptz
);
create index oauth_client_org on oauth_client (org_id, created_at desc);

-- What a user has allowed an app, and for which organization: asked again only for more.
create table oauth_consent (
  user_id identifier not null references app_user on delete cascade,
  client_id text not null references oauth_client on delete cascade,
  org_id identifier not null references organization on delete cascade,
  scopes text[] not null,
  primary key (user_id, client_id)
);

-- What the authorization server keeps. `id` is SHA-256 of the token for every kind that is a credential.
create table oauth_artifact (
  kind text not null,
  id bytea not null,
  grant_id identifier,
  payload jsonb not null,
  consumed_at timestamptz,
  expires_at timestamptz not null,
  created_at timestamptz not null default now(),
  primary key (kind, id)
);
create index oauth_artifact_grant on oauth_artifact (grant_id) where grant_id is not null;
create index oauth_artifact_expiry on oauth_artifact (expires_at);

-- A grant as its user sees it: a session (decision D63), and what its access tokens are checked against.
create table oauth_grant (
  id identifier primary key,
  user_id identifier not null references app_user on delete cascade,
  org_id identifier not null references organization on delete cascade,
  client_id text not null references oauth_client on delete cascade,
  scopes text[] not null,
  created_at timestamptz not null default now(),
  last_activity timestamptz not null default now(),
  expires_at timestamptz not null,
  ip text not null,
  user_agent text not null
);
create index oauth_grant_user on oauth_grant (user_id);
create index oauth_grant_expiry on oauth_grant (expires_at);

-- Secrets that all processes share: `signing_key`, encrypted with a key derived from CADRE_SECRET_KEY.
create table service_secret (
  name text primary key,
  value bytea not null,
  created_at timestamptz not null default now()
);

create table audit (
  id identifier primary key,
  at timestamptz not null default now(),
  org_id identifier,
  actor text,
  action text not null,
  target text,
  request_id text,
  detail jsonb not null default '{}'
);
create index audit_org on audit (org_id, id desc);

create table project (
  id bigint generated always as identity primary key,
  org_id identifier not null references organization on delete cascade,
  name text collate "C" not null,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now()
);
create unique index project_name on project (org_id, lower(name));
create index project_created on project (org_id, created_at, id);
create index project_updated on project (org_id, updated_at, id);
create index project_sorted on project (org_id, name, id);

create table agent (
  id identifier primary key,
  project_id bigint not null references project,
  name text collate "C" not null,
  description text not null default '',
  status text not null check (status in ('creating', 'running', 'paused', 'stopped', 'error', 'updating')),
  -- Where `updating` leads back to; null in every other state.
  settles_to text check (settles_to in ('running', 'paused', 'stopped')),
  settle_attempts int not null default 0,
  -- Set until the agent first runs: why it will be launched then.
  launch_trigger text check (launch_trigger in ('create', 'launch')),
  -- Raised by every change that somebody asks for: the ETag. Settling, which such a change decided already, names it.
  revision bigint not null default 1,
  version int not null default 0,
  config jsonb not null,
  -- Environment variables, AES-256-GCM with the agent's id as associated data; null when there are none.
  environment bytea,
  metadata jsonb not null default '{}',
  created_by identifier not null,
  -- The credential that tokens are counted for: whoever last created, started, restarted or launched the agent.
  token_subject text not null,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  last_activity timestamptz
);
create unique index agent_name on agent (project_id, name);
create index agent_created on agent (project_id, created_at, id);
create index agent_unsettled on agent (updated_at) where status in ('creating', 'updating');

-- What an agent was at each version. A task keeps the version it was created with.
create table agent_version (
  agent_id identifier not null references agent on delete cascade,
  version int not null,
  name text not null,
  description text not null,
  config jsonb not null,
  environment bytea,
  created_by identifier not null,
  created_at timestamptz not null default now(),
  primary key (agent_id, version)
);

create table thread (
  id identifier primary key,
  project_id bigint not null references project on delete cascade,
  agent_id identifier not null references agent on delete cascade,
  metadata jsonb not null default '{}',
  created_by identifier not null,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now()
);
create index thread_project on thread (project_id, id desc);

-- A process that runs tasks. Its row is its lease: a worker that has not been seen for a while is dead, and so is an
-- earlier one of the same instance (data folder). `status` of the service counts those seen lately.
create table worker (
  id identifier primary key,
  instance text not null,
  slots int not null,
  started_at timestamptz not null default now(),
  seen_at timestamptz not null default now()
);

-- No foreign keys to agent and project: the tasks of a removed agent are invisible at once and purged in the background.
create table task (
  id identifier primary key,
  project_id bigint not null,
  agent_id identifier not null,
  agent_version int not null,
  thread_id identifier,
  retried_from identifier,
  schedule_id identifier,
  status text not null check (status in ('queued', 'running', 'waiting', 'completed', 'failed', 'canceled', 'expired')),
  wait jsonb,
  input jsonb not null,
  output jsonb,
  error jsonb,
  priority int not null default 5,
  concurrency_key text,
  run_after timestamptz,
  queue_ttl_seconds int,
  timeout_seconds int,
  max_attempts int not null,
  budget jsonb not null default '{}',
  usage jsonb not null,
  metadata jsonb not null default '{}',
  created_by identifier not null,
  request_id text,
  trace_id text,
  -- The fencing number: raised by every claim, named by every write of the worker that claimed.
  attempt int not null default 0,
  -- How many writes this claim has made: a write whose commit was in doubt is recognized and not made twice.
  writes int not null default 0,
  -- Workers that died under this task since its last finished step; `max_attempts` bounds it.
  crashes int not null default 0,
  worker_id text,
  -- The job that will run this task, in the queue's own table; null while it may not run (agent paused or stopped).
  job_id uuid,
  -- Which attempt of that job claimed last, so that a claim overtaken by a later one of the same job is refused.
  job_attempt int not null default -1,
  -- Who asked to cancel, and how: `{reason, mode, user_id}`.
  cancel jsonb,
  cancel_requested_at timestamptz,
  last_sequence int not null default 0,
  -- When it expires: of a queued task the end of its queue_ttl_seconds, of a started one that of its timeout_seconds.
  expires_at timestamptz,
  created_at timestamptz not null default now(),
  started_at timestamptz,
  finished_at timestamptz,
  updated_at timestamptz not null default now()
) with (fillfactor = 80);
create index task_agent on task (agent_id, id desc);
create index task_project on task (project_id, id desc);
create index task_agent_status on task (agent_id, status, id desc);
create index task_project_status on task (project_id, status, id desc);
create index task_agent_finished on task (agent_id, finished_at) where finished_at is not null;
create index task_worker on task (worker_id) where status = 'running';
create index task_parked on task (agent_id, id) where job_id is null and status in ('queued', 'waiting');
create index task_due on task (run_after) where job_id is null and status = 'queued' and run_after is not null;
create index task_expiry on task (expires_at) where expires_at is not null and status in ('queued', 'waiting');
create index task_cancel on task (cancel_requested_at) where cancel_requested_at is not null and status = 'running';

-- Agents that are gone, and whose tasks, logs and usage are still being purged.
create table removed_agent (
  agent_id identifier primary key,
  removed_at timestamptz not null default now()
);

-- The journal: a row is committed before its step runs (the intent) and again after it ends (the result).
create table task_step (
  task_id identifier not null,
  index int not null,
  id identifier not null,
  agent_id identifier not null,
  type text not null check (type in ('model_call', 'tool_call', 'approval', 'wait')),
  status text not null check (status in ('started', 'completed', 'failed', 'unknown')),
  -- How many times it was begun, and how many of those failed at the provider.
  attempt int not null,
  failures int not null default 0,
  name text not null,
  input jsonb,
  output jsonb,
  error jsonb,
  model text,
  usage jsonb,
  started_at timestamptz not null default now(),
  finished_at timestamptz,
  primary key (task_id, index)
) partition by range (task_id);
create index task_step_agent on task_step (agent_id, started_at);

create table task_event (
  task_id identifier not null,
  sequence int not null,
  type text not null,
  data jsonb not null,
  created_at timestamptz not null default now(),
  primary key (task_id, sequence)
) partition by range (task_id);

create table agent_log (
  id identifier not null,
  agent_id identifier not null,
  task_id identifier,
  timestamp timestamptz not null default clock_timestamp(),
  level text not null check (level in ('debug', 'info', 'warn', 'error')),
  message text not null,
  context jsonb not null default '{}',
  primary key (timestamp, id)
) partition by range (timestamp);
create index agent_log_agent on agent_log (agent_id, timestamp desc, id desc);
create index agent_log_level on agent_log (agent_id, level, timestamp desc, id desc);

-- What agents consumed, a row an agent and minute. Shares of the process are attributed by the rule in
-- docs/guides/metrics.md.
create table agent_usage (
  agent_id identifier not null,
  minute timestamptz not null,
  model_calls bigint not null default 0,
  tool_calls bigint not null default 0,
  input_tokens bigint not null default 0,
  output_tokens bigint not null default 0,
  network_in bigint not null default 0,
  network_out bigint not null default 0,
  -- Seconds of one core, and bytes held times seconds held.
  cpu_seconds double precision not null default 0,
  memory_byte_seconds double precision not null default 0,
  -- Cores and memory bytes there were, times seconds: what the two above are fractions of.
  cpu_seconds_available double precision not null default 0,
  memory_byte_seconds_available double precision not null default 0,
  stored_bytes bigint not null default 0,
  primary key (agent_id, minute)
);
create index agent_usage_minute on agent_usage (minute);

create table webhook (
  id identifier primary key,
  org_id identifier not null references organization on delete cascade,
  url text not null,
  events text[] not null,
  filters jsonb not null default '{}',
  secret bytea not null,
  status text not null default 'active' check (status in ('active', 'disabled')),
  created_by identifier not null,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now()
);
create index webhook_org on webhook (org_id, id desc);

-- The outbox: an event is a row of the transaction that makes it true.
create table event (
  id identifier not null,
  org_id identifier not null,
  project_id bigint,
  agent_id identifier,
  type text not null,
  occurred_at timestamptz not null default now(),
  data jsonb not null,
  delivered_at timestamptz,
  primary key (id)
) partition by range (id);
create index event_org on event (org_id, id desc);
create index event_undelivered on event (id) where delivered_at is null;

-- Answers to requests with an Idempotency-Key, for 24 hours (decision D98).
create table idempotency (
  subject text not null,
  key text not null,
  hash bytea not null,
  status int not null,
  -- Encrypted: an answer may show environment variables.
  body bytea not null,
  created_at timestamptz not null default now(),
  primary key (subject, key)
);
create index idempotency_age on idempotency (created_at);

-- Makes the partitions that rows from yesterday to `days` ahead fall into, and those that are missing between.
-- Days and months are UTC's, whatever the time zone of the session is.
create function ensure_partitions(days int) returns void language plpgsql set timezone = 'UTC' as $$
declare
  at timestamptz;
  name text;
begin
  perform pg_advisory_xact_lock(hashtext('cadre partitions'));
  for at in select generate_series(date_trunc('day', now() - interval '1 day', 'UTC'), now() + make_interval(days => days), '1 day') loop
    name := 'agent_log_' || to_char(at at time zone 'UTC', 'YYYYMMDD');
    if to_regclass(name) is null then
      execute format('create table %I partition of agent_log for values from (%L) to (%L)', name, at, at + interval '1 day');
    end if;
  end loop;
  for at in select generate_series(date_trunc('month', now() - interval '1 day', 'UTC'), now() + make_interval(days => days), '1 month') loop
    name := 'task_step_' || to_char(at at time zone 'UTC', 'YYYYMM');
    if to_regclass(name) is null then
      execute format('create table %I partition of task_step for values from (%L) to (%L)', name,
        id_floor('task', at), id_floor('task', at + interval '1 month'));
    end if;
    name := 'task_event_' || to_char(at at time zone 'UTC', 'YYYYMM');
    if to_regclass(name) is null then
      execute format('create table %I partition of task_event for values from (%L) to (%L)', name,
        id_floor('task', at), id_floor('task', at + interval '1 month'));
    end if;
    name := 'event_' || to_char(at at time zone 'UTC', 'YYYYMM');
    if to_regclass(name) is null then
      execute format('create table %I partition of event for values from (%L) to (%L)', name,
        id_floor('evt', at), id_floor('evt', at + interval '1 month'));
    end if;
  end loop;
end $$;
select ensure_partitions(45);
