-- runs-with: 0066
-- A worker that is asked to drain takes no more tasks; it says itself when it works on none.
alter table worker add column draining_since timestamptz;
alter table worker add column drained_at timestamptz;
