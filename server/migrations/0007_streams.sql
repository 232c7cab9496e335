-- What streams need: an order of all events across tasks, and who has how many of them open.

-- The transaction that wrote an event. With the snapshots of readers it tells exactly which events a reader has not been
-- told of yet, whatever the order was in which transactions began and ended.
alter table task_event add column xid xid8 not null default pg_current_xact_id();
create index task_event_xid on task_event (xid);

-- Streams and waits that a credential has open, by the worker whose process serves them: `{"worker_…": 3}`. What a dead
-- worker had open no longer counts. Unlogged: a crash of PostgreSQL closes nothing, but only loosens the bound.
create unlogged table open_stream (
  subject text primary key,
  holders jsonb not null
);
