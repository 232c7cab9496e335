-- runs-with: 0015
-- Of how much of a budget somebody is told is said by whoever sets it.
alter table budget add column warn_percent int not null default 80 check (warn_percent between 1 and 100);
