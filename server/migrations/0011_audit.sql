-- Who did what with which credential, from where, and what it was before and after. No column ever holds a secret.
alter table audit
  -- The user whom an entry is about that belongs to no organization: a sign-in, a change of password.
  add column user_id text,
  add column credential_kind text check (credential_kind in ('api_key', 'token', 'session')),
  add column credential_id text,
  add column ip text,
  add column user_agent text,
  add column before jsonb,
  add column after jsonb;
create index audit_user on audit (user_id, id desc) where org_id is null;
create index audit_actor on audit (actor, id desc);
create index audit_credential on audit (org_id, credential_id, id desc);
create index audit_request on audit (request_id);
create index audit_target on audit (org_id, target, id desc);
create index audit_action on audit (org_id, action, id desc);
