-- Budgets, and what was used by whom.

-- A limit of what a subject may spend in a window of UTC. A task locks its budgets after itself, in the order of their
-- identifiers. `spent_*` and `warned` are of the window that began at `window_start`; a later one begins at zero. What
-- calls in flight may use is held, and goes from one window to the next with them.
create table budget (
  id identifier primary key,
  org_id identifier not null references organization on delete cascade,
  -- Where it was made.
  project_id bigint not null references project on delete cascade,
  scope text not null check (scope in ('agent', 'project', 'api_key', 'organization')),
  -- The identifier of what it limits; of a project with its prefix.
  subject identifier not null,
  -- The same, where the budget goes with it.
  agent_id identifier references agent on delete cascade,
  key_id identifier references api_key on delete cascade,
  max_cost_usd numeric check (max_cost_usd >= 0),
  max_tokens bigint check (max_tokens >= 0),
  period text not null check (period in ('hour', 'day', 'month', 'total')),
  window_start timestamptz not null,
  spent_cost_usd numeric not null default 0,
  spent_tokens bigint not null default 0,
  held_cost_usd numeric not null default 0 check (held_cost_usd >= 0),
  held_tokens bigint not null default 0 check (held_tokens >= 0),
  -- Somebody was told that 80 % are spent.
  warned boolean not null default false,
  created_by identifier not null,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  check (max_cost_usd is not null or max_tokens is not null)
) with (fillfactor = 70);
create unique index budget_subject on budget (subject, period);
create index budget_org on budget (org_id, id desc);
create index budget_project on budget (project_id, id desc);
create index budget_agent on budget (agent_id) where agent_id is not null;
create index budget_key on budget (key_id) where key_id is not null;

-- Tasks that wait until a budget has room.
create index task_budget on task (id) where status = 'waiting' and job_id is null and wait->>'reason' = 'budget';

-- Calls of models and tools by the hour, for the bill. A row is of a model or of a tool, the other is ''; so is a
-- credential that nobody knows. `cost_usd` is the sum of the calls whose price is known, `unpriced_calls` the number of
-- the others.
create table usage_hour (
  org_id identifier not null,
  project_id bigint not null,
  agent_id identifier not null,
  credential_id identifier not null,
  model text not null,
  tool text not null,
  hour timestamptz not null,
  calls bigint not null default 0,
  input_tokens bigint not null default 0,
  output_tokens bigint not null default 0,
  cached_tokens bigint not null default 0,
  cost_usd numeric not null default 0,
  unpriced_calls bigint not null default 0,
  primary key (project_id, hour, agent_id, credential_id, model, tool)
);
create index usage_hour_org on usage_hour (org_id, hour);
