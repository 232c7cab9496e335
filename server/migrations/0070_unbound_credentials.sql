-- runs-with: 0066
-- A credential that names no host goes nowhere until a tool names it, whose hosts are its own then. Builds before send it nowhere.
alter table credential drop constraint credential_allowed_hosts_check;
