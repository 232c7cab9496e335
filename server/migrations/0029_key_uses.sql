-- runs-with: 0015
-- What API keys are used for and from where, and which limits refused requests: so that whoever revokes a key, takes a scope
-- away or meets 429 knows what it is about. All of it is written in batches beside the requests (server/src/http/uses.ts).

-- Where the latest request with the key came from; nothing is kept of those before.
alter table api_key add column last_ip text;

-- Requests by operation and day (UTC) that the key's scopes allowed.
create table api_key_call (
  key_id identifier not null references api_key on delete cascade,
  day date not null,
  operation text not null,
  requests bigint not null,
  last_at timestamptz not null,
  primary key (key_id, day, operation)
);
create index api_key_call_age on api_key_call (day);

-- Requests that were answered 429, by hour, subject of the limit (a key, a grant, or a user's sessions) and limit.
create table refusal_hour (
  org_id identifier not null,
  hour timestamptz not null,
  subject identifier not null,
  bucket text not null,
  user_id identifier not null,
  refused bigint not null,
  last_at timestamptz not null,
  primary key (org_id, hour, subject, bucket)
);
create index refusal_hour_age on refusal_hour (hour);

select build_index('usage_hour', 'usage_hour_credential', '(credential_id, hour)');
