-- runs-with: 0015
-- What a message says in parts, where files are among them; `content` stands for them where only text can.
alter table task_message add column parts jsonb;
