-- Open tasks are counted for metrics without reading those that have ended.
create index task_open on task (status) where finished_at is null;
