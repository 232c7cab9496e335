-- runs-with: 0075
-- Prices that an organization gives for models of its own providers, in US dollars a million tokens, by the provider's names of them.
alter table model_provider add column prices jsonb not null default '{}';
