-- The door's own rows look for restored ones that they replace. Those are few: finding that there are none must not depend on how many
-- calls the audit has, nor on how many of a turn have the same id.
create index calls_restored_idx on calls (turn_id, call_id) where restored;
