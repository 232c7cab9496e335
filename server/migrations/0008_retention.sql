-- What has outlived its retention is found without reading what has not (docs/guides/operations.md).

-- Written once, when a task ends, at the right end of the index.
create index task_finished on task (finished_at, id) where finished_at is not null;
-- Many rows have the same hour, which the index keeps once.
create index usage_hour_age on usage_hour (hour);
