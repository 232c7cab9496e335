-- Tools that a project brings along, and the secrets that they are called with.

create table tool (
  id identifier primary key,
  project_id bigint not null references project on delete cascade,
  name text collate "C" not null,
  description text not null,
  kind text not null check (kind in ('http', 'openapi', 'mcp')),
  -- Null where the kind tells it of each of its tools.
  safety text check (safety in ('safe', 'keyed', 'unsafe')),
  -- JSON Schema of the arguments; null where each of the kind's tools has its own.
  parameters jsonb,
  -- The member named like the kind, as given: `http`, `openapi` or `mcp`.
  definition jsonb not null,
  -- Kinds openapi and mcp: the tools that were found, `[{name, description, parameters, safety, fingerprint, facts}]`.
  pinned jsonb,
  status text not null default 'active' check (status in ('active', 'drifted')),
  -- What a server says now that differs from what was pinned; null while nothing does.
  drift jsonb,
  -- Raised by every change, so that a change can tell that another one came first.
  revision bigint not null default 1,
  created_by identifier not null,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now()
);
create unique index tool_name on tool (project_id, name);
create index tool_project on tool (project_id, id desc);

create table credential (
  id identifier primary key,
  project_id bigint not null references project on delete cascade,
  name text collate "C" not null,
  -- AES-256-GCM with the credential's id as associated data.
  value bytea not null,
  created_by identifier not null,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now()
);
create unique index credential_name on credential (project_id, name);
create index credential_project on credential (project_id, id desc);
