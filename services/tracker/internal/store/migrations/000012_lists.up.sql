-- Whether what waits is open, and whether what it waits for is: kept with the edge, so that lists of what is blocked or ready look at no
-- other item. Whoever finishes, takes up, removes, restores or destroys an item writes its ends of its edges; see ends.go in internal/store.
alter table relations
    add column from_open boolean not null default false,
    add column to_open boolean not null default false;
update relations r set from_open = f.status_group < 2 and f.removed_at is null from items f where r.kind = 'waiting_on' and f.id = r.from_id;
update relations r set to_open = t.status_group < 2 and t.removed_at is null from items t where r.kind = 'waiting_on' and t.id = r.to_id;
create index relations_blocking_idx on relations (from_id) include (from_open) where kind = 'waiting_on' and cleared_at is null and to_open;
