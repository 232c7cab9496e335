-- What an external identity provider says of a user (decisions 1.4): linked on issuer and subject.
alter table identity
  add column email text,
  add column created_at timestamptz not null default now(),
  add column last_sign_in_at timestamptz not null default now();
create index identity_user on identity (user_id);
