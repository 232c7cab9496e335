-- runs-with: 0044
-- Push notifications of A2A: webhooks of one task. They subscribe to nothing, so that no other task concerns them; what
-- matches events by subscriptions, and lists of an organization's webhooks, leave them out.

alter table webhook add column push_task_id identifier;
-- The identifier that the client knows it by, unique in its task.
alter table webhook add column push_id text;
-- How its requests authenticate, as far as it is shown.
alter table webhook add column push_scheme text;
-- Headers of every request: encrypted.
alter table webhook add column push_headers bytea;

create unique index webhook_push on webhook (push_task_id, push_id) where push_task_id is not null;
create index webhook_own on webhook (org_id, id desc) where push_task_id is null;

drop index webhook_active;
create index webhook_active on webhook (org_id) where status = 'active' and push_task_id is null;
