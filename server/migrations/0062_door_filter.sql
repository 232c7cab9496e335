-- runs-with: 0056
-- Lists of tasks are filtered by the protocol or trigger that they came by. Other tasks have no entry.
create index task_door on task (project_id, (metadata #>> '{door,kind}'), id)
  where metadata #>> '{door,kind}' is not null;
