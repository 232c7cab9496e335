-- runs-with: 0015
-- Reads every step, and keeps nobody from writing meanwhile: that is why it is not done where the condition is added.
alter table task_step validate constraint task_step_type_check;
