-- runs-with: 0015
-- Agents are found by a part of their name or description without reading all of a project, where the extension is (0025).
do $$
declare
  home text;
begin
  select n.nspname into home from pg_extension e join pg_namespace n on n.oid = e.extnamespace where e.extname = 'pg_trgm';
  if home is not null then
    -- An agent's row is indexed anew with each move of its state. So texts go to a list of pending ones (kB), which is searched too and is
    -- kept short; in a long one they would be searched one by one.
    perform build_index('agent', 'agent_text_parts', format('using gin (name %1$I.gin_trgm_ops, description %1$I.gin_trgm_ops)
      with (fastupdate = on, gin_pending_list_limit = 256)', home));
  end if;
end $$;
