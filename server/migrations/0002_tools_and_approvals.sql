-- What tasks need beyond model calls: approvals, messages while they run, and what they may spend.

alter table task
  -- The credential that created it: a key, a grant or a cookie session. Null where a schedule did.
  add column credential_id identifier,
  -- W3C Trace Context as it came with the request.
  add column traceparent text,
  -- What others changed in it (messages, resolved approvals) and its worker has not read yet.
  add column unseen int not null default 0,
  -- What is reserved for the model call in flight: `{tokens, cost_usd, budget_ids}`.
  add column hold jsonb;

-- Somebody is asked: for leave to make a call, or what became of one.
create table approval (
  id identifier primary key,
  project_id bigint not null,
  agent_id identifier not null,
  task_id identifier not null,
  step_id identifier not null,
  step_index int not null,
  kind text not null check (kind in ('tool_call', 'recovery')),
  status text not null default 'pending' check (status in ('pending', 'approved', 'rejected', 'expired')),
  tool text not null,
  arguments jsonb,
  -- SHA-256 of the tool's name and the canonical arguments: what is executed must have it.
  call_hash text not null,
  -- JSON Schema that edited arguments must keep, as it was when the call was asked for.
  parameters jsonb,
  -- The arguments and the hash of an edited call, where the resolution has one.
  approved_arguments jsonb,
  -- Of a recovery: the result that a person says the call had.
  result jsonb,
  on_timeout text not null default 'reject' check (on_timeout in ('reject', 'cancel')),
  resolved_by identifier,
  resolved_at timestamptz,
  reason text,
  expires_at timestamptz,
  created_at timestamptz not null default now()
);
create index approval_project on approval (project_id, id desc);
create index approval_pending on approval (project_id, status, id desc);
create index approval_task on approval (task_id);
create index approval_expiry on approval (expires_at) where status = 'pending' and expires_at is not null;

-- Messages that people send to a task after its creation. Its conversation has them before the step named.
create table task_message (
  task_id identifier not null,
  position int not null,
  id identifier not null,
  content text not null,
  -- Null until the task has read it.
  before_step int,
  created_by identifier not null,
  created_at timestamptz not null default now(),
  primary key (task_id, position)
);
create index task_message_pending on task_message (task_id) where before_step is null;
