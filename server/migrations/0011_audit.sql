-- Who did what with which credential, from where, and what it was before and after. No column ever holds a secret. What
-- concerns a person rather than an organization, such as signing in, is written once for each organization of that person.
alter table audit
  add column credential_kind text check (credential_kind in ('api_key', 'token', 'session')),
  add column credential_id text,
  add column ip text,
  add column user_agent text,
  add column before jsonb,
  add column after jsonb;
-- An organization finds its entries by any one of these without reading the others.
create index audit_actor on audit (org_id, actor, id desc);
create index audit_target on audit (org_id, target, id desc);
create index audit_action on audit (org_id, action, id desc);
create index audit_credential on audit (org_id, credential_id, id desc);
create index audit_request on audit (org_id, request_id, id desc);
create index audit_ip on audit (org_id, ip, id desc);
