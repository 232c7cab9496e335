-- Links by which people join an organization. Of the token in the link only SHA-256 is kept.
create table invitation (
  id identifier primary key,
  org_id identifier not null references organization on delete cascade,
  token_hash bytea not null unique,
  role text not null check (role in ('owner', 'admin', 'member', 'viewer')),
  -- The address whose account may accept it; null: whoever has the link.
  email text,
  created_by identifier not null,
  created_at timestamptz not null default now(),
  expires_at timestamptz not null,
  accepted_at timestamptz,
  accepted_by identifier,
  revoked_at timestamptz
);
create index invitation_org on invitation (org_id, id desc);
-- The open invitations of a member are withdrawn with the right to make them.
create index invitation_open on invitation (org_id, created_by) where accepted_at is null and revoked_at is null;
create index invitation_over on invitation (coalesce(accepted_at, revoked_at, expires_at));

alter table organization add column updated_at timestamptz not null default now();
create index member_joined on member (org_id, joined_at, user_id);
