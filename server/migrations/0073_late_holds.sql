-- runs-with: 0066
-- Calls of models of remote tasks whose reservations outlive the lease that began them: looked through in every round of upkeep.
create index work_holds on work (task_id) where holds <> '{}';
