-- runs-with: 0015
-- Lists of all projects of an organization count none.

-- From here to the end of the migration nobody else makes or removes a project.
lock table project in share row exclusive mode;

-- Projects of an organization, kept as agents are (agent_count): each connection (backend) has a row of its own, and the maintenance
-- adds them up under backend 0.
create table project_count (
  org_id identifier not null,
  backend int not null,
  projects bigint not null,
  primary key (org_id, backend)
) with (fillfactor = 50);

create function count_projects_made() returns trigger language plpgsql as $$
begin
  insert into project_count as c (org_id, backend, projects)
  select org_id, pg_backend_pid(), count(*) from made group by org_id order by org_id
  on conflict (org_id, backend) do update set projects = c.projects + excluded.projects;
  return null;
end $$;

create function count_projects_gone() returns trigger language plpgsql as $$
begin
  insert into project_count as c (org_id, backend, projects)
  select org_id, pg_backend_pid(), -count(*) from gone group by org_id order by org_id
  on conflict (org_id, backend) do update set projects = c.projects + excluded.projects;
  return null;
end $$;

create function count_project_moved() returns trigger language plpgsql as $$
begin
  insert into project_count as c (org_id, backend, projects)
  values (old.org_id, pg_backend_pid(), -1), (new.org_id, pg_backend_pid(), 1)
  on conflict (org_id, backend) do update set projects = c.projects + excluded.projects;
  return null;
end $$;

create trigger project_made after insert on project referencing new table as made
  for each statement execute function count_projects_made();
create trigger project_gone after delete on project referencing old table as gone
  for each statement execute function count_projects_gone();
create trigger project_moved after update of org_id on project for each row
  when (old.org_id <> new.org_id) execute function count_project_moved();

insert into project_count (org_id, backend, projects) select org_id, 0, count(*) from project group by org_id;
