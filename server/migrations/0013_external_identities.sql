-- Accounts at identity providers that sign their users in here (decisions 1.4): linked on issuer and subject, which are
-- compared as they are. `email` is what the provider said last, verified or not; nothing is found by it.
alter table identity
  add column id identifier not null unique,
  add column email text,
  add column created_at timestamptz not null default now(),
  add column last_sign_in_at timestamptz not null default now();
create index identity_user on identity (user_id);
