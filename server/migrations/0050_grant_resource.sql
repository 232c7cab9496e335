-- runs-with: 0044
-- The resource that an app asked access to (RFC 8707): its tokens are good there alone.
alter table oauth_grant add column resource text;
