-- What writes of items lean on: counts, claims, the next item that is ready, and whether an item is there already.

-- How many items stand where, without a row that every write of a project would wait for: each item counts in one of 64 rows, by its id, and a
-- project's counts are their sums. A row here is locked last in a write, after items.
create table tallies (
    project text not null references projects (key),
    shard smallint not null,
    todo int not null default 0,
    active int not null default 0,
    done int not null default 0,
    closed int not null default 0,
    primary key (project, shard)
);
insert into tallies (project, shard, todo, active, done, closed)
select project, get_byte(uuid_send(id), 15) % 64, count(*) filter (where status_group = 0), count(*) filter (where status_group = 1),
    count(*) filter (where status_group = 2), count(*) filter (where status_group = 3)
from items where removed_at is null group by 1, 2;
alter table projects
    drop column todo_count,
    drop column active_count,
    drop column done_count,
    drop column closed_count,
    drop column last_change_at,
    drop column last_change_by,
    drop column last_change_kind;

-- What is known of a project's work: its counts, and who changed something in it last. A drag on the board is no such change.
create view project_facts as
select p.key as project, coalesce(t.todo, 0) as todo, coalesce(t.active, 0) as active, coalesce(t.done, 0) as done, coalesce(t.closed, 0) as closed,
    h.created_at as last_change_at, h.actor as last_change_by, h.actor_kind as last_change_kind
from projects p
left join lateral (
    select sum(todo)::int as todo, sum(active)::int as active, sum(done)::int as done, sum(closed)::int as closed from tallies where project = p.key) t on true
left join lateral (
    select created_at, actor, actor_kind from history where project = p.key and item_id is not null and kind <> 'placed' order by position desc limit 1) h on true;

-- The holder's kind: a token may be called like a seat.
alter table items add column claim_kind text not null default '';
-- The next item to take up, per project; see readyOrder in internal/store.
create index items_ready_idx on items (project, priority desc, due_at, created_at, id) where status_group < 2 and removed_at is null;

-- What a title is compared by: in lower case, each run of white space one space.
create function title_key(title text) returns text language sql immutable parallel safe
    return lower(regexp_replace(btrim(title), '\s+', ' ', 'g'));
create index items_title_key_idx on items (project, title_key(title)) where status_group < 2 and removed_at is null;
