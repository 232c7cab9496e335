-- A key that was rotated keeps its identifier; its old secret works until the overlap ends.
alter table api_key
  add column previous_hash bytea,
  add column previous_expires_at timestamptz;
create unique index api_key_previous on api_key (previous_hash) where previous_hash is not null;
