-- A task whose creation overtook the deletion of its agent may be committed after the purge: the agent's row stays for a
-- while, so that such a task is never seen, and goes with a second purge.
alter table removed_agent add column purged_at timestamptz;
