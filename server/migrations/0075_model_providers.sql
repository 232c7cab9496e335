-- runs-with: 0073
-- Model providers of organizations, with keys of their own, encrypted with the id of the row as associated data.
create table model_provider (
  id identifier primary key,
  org_id identifier not null references organization on delete cascade,
  name text collate "C" not null,
  base_url text not null,
  protocol text not null,
  api_key bytea,
  -- The last characters of the key, to tell keys apart.
  key_preview text,
  -- Numbers of the projects that may use it; null: all of the organization.
  projects bigint[],
  created_by identifier not null,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  constraint model_provider_name unique (org_id, name)
);

-- Raised by each change of an organization's model providers, so that whoever read them before knows; 0: it never had one.
alter table organization add column model_providers_version integer not null default 0;
