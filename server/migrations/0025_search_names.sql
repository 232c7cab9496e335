-- runs-with: 0015
-- Names of projects are found by a part of them without reading all. Where the extension may not be made, which any owner of a
-- database may since it is a trusted one, they are read as before; docs/operations.md tells how to add the index later.
do $$
declare
  home text;
begin
  begin
    create schema if not exists trigrams;
    create extension if not exists pg_trgm schema trigrams;
  exception when insufficient_privilege or undefined_file or feature_not_supported or undefined_object then
    raise notice 'without the extension pg_trgm a search among names reads all of them: %', sqlerrm;
  end;
  select n.nspname into home from pg_extension e join pg_namespace n on n.oid = e.extnamespace where e.extname = 'pg_trgm';
  if home is not null then
    perform build_index('project', 'project_name_parts', format('using gin (name %I.gin_trgm_ops) with (fastupdate = off)', home));
  end if;
end $$;
