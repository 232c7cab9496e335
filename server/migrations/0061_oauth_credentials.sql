-- runs-with: 0056
-- Credentials that renew themselves: what an issuer is asked for, and the tokens that it gave.

-- Of an oauth2 credential `value` is empty.
alter table credential add column type text not null default 'secret' check (type in ('secret', 'oauth2'));

create table credential_oauth (
  credential_id identifier primary key references credential on delete cascade,
  -- `{grant, issuer | authorization_endpoint + token_endpoint | mcp_url, client_id, scopes, resource, registered_for}`
  settings jsonb not null,
  -- AES-256-GCM with the credential's id as associated data, as are the tokens.
  client_secret bytea,
  status text not null default 'needs_authorization' check (status in ('connected', 'needs_authorization', 'failing')),
  -- Why the last renewal failed, `{code, message}`.
  error jsonb,
  -- Encrypted JSON: `{access_token, refresh_token}`.
  tokens bytea,
  -- Raised with each set of tokens, so that a renewal names the one that it replaces.
  generation bigint not null default 0,
  expires_at timestamptz,
  renew_at timestamptz,
  -- Whether the issuer replaces refresh tokens; null while that is not known.
  rotates boolean,
  -- The renewal that is under way: who makes it, and until when it has the sole right to.
  lease text,
  leased_until timestamptz,
  failures int not null default 0,
  -- The next renewal is made then, after one that failed and may be repeated.
  retry_at timestamptz,
  connected_at timestamptz
);

-- Authorizations that a person has begun and that the issuer has not answered yet.
create table credential_authorization (
  state_hash bytea primary key,
  credential_id identifier not null references credential_oauth on delete cascade,
  user_id identifier not null references app_user on delete cascade,
  -- PKCE's verifier, encrypted, with the credential's id as associated data.
  verifier bytea not null,
  expires_at timestamptz not null
);
create index credential_authorization_credential on credential_authorization (credential_id);
create index credential_authorization_user on credential_authorization (user_id);

select build_index('task', 'task_credential',
  '(id) where status = ''waiting'' and job_id is null and wait->>''reason'' = ''credential''');
