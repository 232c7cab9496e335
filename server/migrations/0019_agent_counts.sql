-- runs-with: 0015
-- Lists of agents stay fast however many there are: their totals are kept instead of counted, and every filter and sort has
-- an index.

-- Indexes of a table that is large already are built by a worker beside those who write (server/src/late-indexes.ts): in a
-- migration they would have to wait until it is built.
create table index_to_build (
  name text primary key,
  statement text not null
);

-- Builds an index at once where the table is small, and leaves it to a worker where it is not.
create function build_index(of regclass, name text, definition text) returns void language plpgsql as $$
declare
  rows_at_once constant int := 50000;
  large boolean;
begin
  execute format('select count(*) > %s from (select from %s limit %s) few', rows_at_once, of, rows_at_once + 1) into large;
  if large then
    insert into index_to_build values (name, format('create index concurrently if not exists %I on %s %s', name, of, definition));
  else
    execute format('create index %I on %s %s', name, of, definition);
  end if;
end $$;

-- From here to the end of the migration nobody else makes, moves or removes an agent.
lock table agent in share row exclusive mode;

select build_index('agent', 'agent_status_created', '(project_id, status, created_at, id)');
select build_index('agent', 'agent_status_name', '(project_id, status, name, id)');

-- Agents of a project by state. A connection (backend) has rows of its own, so that no transaction waits for another one;
-- the maintenance adds them up under backend 0. A count of one backend may be negative, their sum never is.
create table agent_count (
  project_id bigint not null,
  status text not null,
  backend int not null,
  agents bigint not null,
  primary key (project_id, status, backend)
) with (fillfactor = 50);

create function count_agents_made() returns trigger language plpgsql as $$
begin
  insert into agent_count as c (project_id, status, backend, agents)
  select project_id, status, pg_backend_pid(), count(*) from made group by project_id, status order by project_id, status
  on conflict (project_id, status, backend) do update set agents = c.agents + excluded.agents;
  return null;
end $$;

create function count_agents_gone() returns trigger language plpgsql as $$
begin
  insert into agent_count as c (project_id, status, backend, agents)
  select project_id, status, pg_backend_pid(), -count(*) from gone group by project_id, status order by project_id, status
  on conflict (project_id, status, backend) do update set agents = c.agents + excluded.agents;
  return null;
end $$;

create function count_agent_moved() returns trigger language plpgsql as $$
begin
  insert into agent_count as c (project_id, status, backend, agents)
  values (old.project_id, old.status, pg_backend_pid(), -1), (new.project_id, new.status, pg_backend_pid(), 1)
  on conflict (project_id, status, backend) do update set agents = c.agents + excluded.agents;
  return null;
end $$;

create trigger agent_made after insert on agent referencing new table as made
  for each statement execute function count_agents_made();
create trigger agent_gone after delete on agent referencing old table as gone
  for each statement execute function count_agents_gone();
create trigger agent_moved after update of status, project_id on agent for each row
  when (old.status <> new.status or old.project_id <> new.project_id) execute function count_agent_moved();

insert into agent_count (project_id, status, backend, agents)
select project_id, status, 0, count(*) from agent group by project_id, status;
