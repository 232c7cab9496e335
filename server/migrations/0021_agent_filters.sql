-- runs-with: 0015
-- Agents of a project are found by their model and by their tags.
select build_index('agent', 'agent_model', '(project_id, (config ->> ''model''), created_at, id)');
select build_index('agent', 'agent_tags', 'using gin ((metadata -> ''tags'') jsonb_path_ops)');
