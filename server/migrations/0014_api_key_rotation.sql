-- A key that was rotated keeps its identifier; its old secret works until the overlap ends.
alter table api_key
  add column previous_hash bytea,
  add column previous_expires_at timestamptz;
create unique index api_key_previous on api_key (previous_hash) where previous_hash is not null;
create index api_key_overlap on api_key (previous_expires_at) where previous_expires_at is not null;
-- Administrators list the keys of all members.
create index api_key_org on api_key (org_id, id desc) where revoked_at is null;
