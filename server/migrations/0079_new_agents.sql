-- runs-with: 0075
-- A new agent costs less.

-- The statement that creates agents holds their projects, the transaction that adds a version its agent, and what removes an agent removes
-- its versions: a key of each row asks the same again.
alter table agent drop constraint agent_project_id_fkey;
alter table agent_version drop constraint agent_version_agent_id_fkey;

-- Most agents have no tags; they need no entry that says so.
drop index if exists agent_tags;
delete from index_to_build where name = 'agent_tags';
select build_index('agent', 'agent_tagged', 'using gin ((metadata -> ''tags'') jsonb_path_ops) where metadata -> ''tags'' is not null');
