-- runs-with: 0062
-- Workers on the side of an agent's owner run its tasks. A row is a task's offer to them, and the lease of the worker that has it.
-- A build without it takes such a task for an ordinary one, so all processes should be of this build before an agent has the runtime.

create table work (
  task_id identifier primary key,
  project_id bigint not null,
  agent_id identifier not null,
  queue text not null,
  priority int not null,
  -- `closed`: the task waits for something else, or has ended.
  status text not null check (status in ('pending', 'claimed', 'closed')),
  offered_at timestamptz not null default now(),
  -- Of the lease: its holder's name in `task.worker_id`, the fencing number, the SHA-256 of the token.
  lease_id identifier,
  attempt int not null default 0,
  lease_hash bytea,
  lease_seconds int,
  lease_until timestamptz,
  claimed_at timestamptz,
  claimed_by identifier,
  credential_id identifier,
  worker text,
  -- What each call of a model that is under way holds of budgets, by its step.
  holds jsonb not null default '{}',
  -- Steps whose results this worker has got, so that a call that it makes again is answered from the journal once.
  delivered jsonb not null default '[]',
  -- Since when the worker's calls wait for something, so that it should park.
  waits_since timestamptz,
  -- What a refused reservation needs.
  wants jsonb
);
create index work_pending on work (project_id, queue, priority desc, task_id) where status = 'pending';
create index work_leases on work (lease_until) where status = 'claimed';
create unique index work_lease on work (lease_hash) where lease_hash is not null;

-- The queues that a key may claim from; null where it may from all.
alter table api_key add column queues text[];

alter table audit drop constraint audit_credential_kind_check;
alter table audit add constraint audit_credential_kind_check check (credential_kind in ('api_key', 'token', 'session', 'lease'));
