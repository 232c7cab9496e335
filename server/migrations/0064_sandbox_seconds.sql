-- runs-with: 0056
-- Seconds of the sandbox, in usage and as a limit of budgets. They have a period of their own in the row, because a program
-- counts them while other calls settle the rest: `sandbox_window` is when it began.
alter table usage_hour add column sandbox_seconds float8 not null default 0;
alter table budget
  add column max_sandbox_seconds bigint check (max_sandbox_seconds >= 0),
  add column spent_sandbox_seconds float8 not null default 0 check (spent_sandbox_seconds >= 0),
  add column sandbox_window timestamptz,
  drop constraint budget_check,
  add constraint budget_check check (max_cost_usd is not null or max_tokens is not null or max_sandbox_seconds is not null);
