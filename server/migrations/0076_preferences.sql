-- runs-with: 0073
-- What a user has chosen of how the console looks: theme, zone of times and the like. What is not chosen is left out.
alter table app_user add column preferences jsonb not null default '{}';
