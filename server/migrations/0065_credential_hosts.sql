-- runs-with: 0056
-- Where a credential may be sent: hosts and patterns of hosts. Null of those that were kept before: anywhere.
alter table credential add column allowed_hosts text[] check (cardinality(allowed_hosts) > 0);
