-- runs-with: 0044
-- Calls of tools on the caller's side can be claimed with a lease. A process of an earlier version writes calls without a
-- project; only the caller of their task can answer those.

alter table tool_call
  add column project_id bigint,
  add column agent_id identifier,
  add column name text,
  add column safety text not null default 'safe' check (safety in ('safe', 'keyed', 'unsafe')),
  add column status text not null default 'pending'
    check (status in ('pending', 'claimed', 'completed', 'failed', 'timed_out', 'canceled', 'unknown')),
  add column attempt int not null default 0,
  -- SHA-256 of the token.
  add column lease_hash bytea,
  add column lease_seconds int,
  add column lease_until timestamptz,
  add column claimed_by identifier,
  add column expires_at timestamptz;

update tool_call c set project_id = t.project_id, agent_id = t.agent_id, name = s.name,
  status = case when s.status = 'started' then 'pending' when s.status = 'completed' then 'completed' else 'failed' end
from task t, task_step s
where t.id = c.task_id and s.task_id = c.task_id and s.index = c.step_index;

create index tool_call_pending on tool_call (project_id, name, id) where status = 'pending';
create index tool_call_leases on tool_call (lease_until) where status = 'claimed';
create index tool_call_project on tool_call (project_id, id);

-- Webhooks may subscribe to requests and results of such calls too.
create index webhook_of_task_events on webhook (org_id) where status = 'active' and events && '{task.*,approval.*,budget.*,task.created,task.started,task.waiting,task.resumed,task.retrying,task.completed,task.failed,task.canceled,task.expired,tool.requested,tool.resolved,approval.requested,approval.resolved,approval.expired,budget.warning,budget.reached}'::text[];

alter table tool drop constraint tool_kind_check;
alter table tool add constraint tool_kind_check check (kind in ('http', 'openapi', 'mcp', 'client'));
