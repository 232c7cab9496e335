-- runs-with: 0015
-- Inputs that people keep to try an agent with, again and again, while they change it.
create table test_case (
  id identifier primary key,
  agent_id identifier not null references agent on delete cascade,
  name text collate "C" not null,
  input jsonb not null,
  -- What a good answer says, for whoever judges it.
  expected text,
  created_by identifier not null,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now()
);
create unique index test_case_name on test_case (agent_id, name);
create index test_case_agent on test_case (agent_id, id desc);
