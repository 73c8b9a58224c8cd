drop index relations_blocking_idx;
alter table relations drop column from_open, drop column to_open;
