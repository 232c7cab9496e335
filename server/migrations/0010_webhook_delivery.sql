-- Who is told of an event, and what became of it (decisions D96, D97).

-- An event waits until it was decided who is to be told; from then on its deliveries stand for it.
drop index event_undelivered;
alter table event rename column delivered_at to matched_at;
create index event_unmatched on event (id) where matched_at is null;

alter table webhook
  -- Signs too until `previous_secret_until`, encrypted like the secret.
  add column previous_secret bytea,
  add column previous_secret_until timestamptz,
  -- Why it is disabled: by whoever manages it, by an answer 410, or after five days of failures.
  add column disabled_reason text check (disabled_reason in ('requested', 'gone', 'failing')),
  add column disabled_at timestamptz,
  -- The first failure since the last success; null while it works.
  add column failing_since timestamptz,
  -- Half as many requests at a time until then: it answered 429, 502 or 504.
  add column slowed_until timestamptz;
create index webhook_active on webhook (org_id) where status = 'active';
-- Whether somebody is to be told of a task is asked with every write of a task, however many webhooks there are.
create index webhook_of_tasks on webhook (org_id) where status = 'active' and events && '{task.*,approval.*,budget.*,task.created,task.started,task.waiting,task.resumed,task.retrying,task.completed,task.failed,task.canceled,task.expired,approval.requested,approval.resolved,approval.expired,budget.warning,budget.reached}'::text[];

-- An event that a webhook is told, or was told, or could not be told. `event_id` is the same over all attempts.
create table delivery (
  id identifier not null primary key,
  webhook_id identifier not null,
  org_id identifier not null,
  event_id identifier not null,
  event text not null,
  status text not null default 'pending' check (status in ('pending', 'delivered', 'failed')),
  -- Why it was given up: all attempts failed, the webhook was disabled, or it answered 410.
  failure text check (failure in ('attempts_exhausted', 'webhook_disabled', 'gone')),
  -- All attempts ever, and those of this round: somebody who asks for it again begins the schedule anew.
  attempts int not null default 0,
  round_attempts int not null default 0,
  -- Asked for again by a person: its failures do not count towards disabling the webhook.
  is_redelivery boolean not null default false,
  -- Told to one webhook because a person wanted to see it arrive: its failures count nowhere.
  is_test boolean not null default false,
  next_attempt_at timestamptz,
  last_response_status int,
  created_at timestamptz not null default now(),
  finished_at timestamptz
) partition by range (id);
create index delivery_webhook on delivery (webhook_id, id desc);
create index delivery_due on delivery (webhook_id, next_attempt_at, id) where status = 'pending';
create index delivery_failed on delivery (webhook_id, finished_at, id) where status = 'failed';

-- What was sent and what came back.
create table delivery_attempt (
  delivery_id identifier not null,
  attempt int not null,
  at timestamptz not null,
  duration_ms int not null,
  -- Where it was sent to: the webhook may have another address by now.
  request_url text not null,
  request_headers jsonb not null,
  response_status int,
  response_headers jsonb,
  -- The first 1 KiB of the answer.
  response_body bytea,
  -- Why there was no answer, or what was wrong with it; null after a success.
  error text,
  primary key (delivery_id, attempt)
) partition by range (delivery_id);

-- Webhooks that have something to be sent. A process that lives owns a lane and alone sends for its webhook, so that the
-- bound of requests at a time holds without counting them here. Of a process that is dead the row in `worker` is gone.
create table webhook_lane (
  webhook_id identifier primary key references webhook on delete cascade,
  -- When the next attempt is due; null where nothing is pending. Of a lane that has an owner it may leave out what is
  -- being sent.
  due_at timestamptz,
  owner identifier,
  -- The last request failed or took long: such lanes share a bound, so that the others never wait for them.
  is_troubled boolean not null default false
) with (fillfactor = 70);
create index webhook_lane_due on webhook_lane (is_troubled, due_at) where owner is null and due_at is not null;
create index webhook_lane_owner on webhook_lane (owner) where owner is not null;

create or replace function ensure_partitions(days int) returns void language plpgsql set timezone = 'UTC' as $$
declare
  at timestamptz;
  months constant text[][] := array[
    ['task_step', 'task'], ['task_event', 'task'], ['event', 'evt'], ['delivery', 'dlv'], ['delivery_attempt', 'dlv']];
  name text;
  i int;
begin
  perform pg_advisory_xact_lock(hashtext('cadre partitions'));
  for at in select generate_series(date_trunc('day', now() - interval '1 day', 'UTC'), now() + make_interval(days => days), '1 day') loop
    name := 'agent_log_' || to_char(at at time zone 'UTC', 'YYYYMMDD');
    if to_regclass(name) is null then
      execute format('create table %I partition of agent_log for values from (%L) to (%L)', name, at, at + interval '1 day');
    end if;
  end loop;
  for at in select generate_series(date_trunc('month', now() - interval '1 day', 'UTC'), now() + make_interval(days => days), '1 month') loop
    for i in 1..array_length(months, 1) loop
      name := months[i][1] || '_' || to_char(at at time zone 'UTC', 'YYYYMM');
      if to_regclass(name) is null then
        execute format('create table %I partition of %I for values from (%L) to (%L)', name, months[i][1],
          id_floor(months[i][2], at), id_floor(months[i][2], at + interval '1 month'));
      end if;
    end loop;
  end loop;
end $$;
select ensure_partitions(45);
