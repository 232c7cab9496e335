-- runs-with: 0066
-- The kinds of tools are those of the contract, which judges every definition that is stored: a new one needs no migration.
alter table tool drop constraint tool_kind_check;
