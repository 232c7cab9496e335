-- runs-with: 0056
-- The history of a schedule is a list of its tasks. Other tasks have no entry.
select build_index('task', 'task_of_schedule', '(schedule_id, id) where schedule_id is not null');
