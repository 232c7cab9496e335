-- runs-with: 0067
-- Agents as the list of models shows them: without reading their configurations.
create index agent_models on agent (project_id, name) include (id, created_at)
  where config->'doors'->>'openai' is distinct from 'false';
