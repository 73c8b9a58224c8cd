-- The whole work item: dates with times, labels, custom fields, checklists, helpers, claims, questions, relations and the trash.

-- A day is kept as midnight UTC of that date with the all-day mark: it floats, and only a question about it binds it to the
-- company's clock.
alter table items
    add column due_at timestamptz,
    add column due_all_day boolean not null default false,
    add column start_at timestamptz,
    add column start_all_day boolean not null default false,
    add column points double precision,
    add column labels text[] not null default '{}',
    -- Values by field id, in the forms that the field package stores.
    add column fields jsonb not null default '{}',
    add column checklists jsonb not null default '[]',
    add column collaborators text[] not null default '{}',
    add column filed_unit text not null default '',
    add column routing_unit text not null default '',
    -- The place in the project's own order; compared byte by byte.
    add column rank text collate "C" not null default '',
    add column depth smallint not null default 1,
    add column body_version int not null default 1,
    add column body_author text not null default '',
    add column body_at timestamptz,
    add column claim_holder text not null default '',
    add column claim_until timestamptz,
    -- Questions that wait for an answer; kept by the comments that ask and answer.
    add column open_asks int not null default 0,
    add column merged_into uuid references items (id) on delete set null,
    add column removed_at timestamptz,
    add column removed_by text not null default '',
    add column removed_kind text not null default '',
    -- The item whose removal took this one along; itself when it was removed itself.
    add column removed_with uuid,
    -- Where an imported item comes from.
    add column external_source text,
    add column external_id text,
    add column external_url text not null default '';
update items set due_at = (due || ' 00:00:00+00')::timestamptz, due_all_day = true where due <> '';
alter table items drop column due;
update items i set filed_unit = p.unit, routing_unit = p.unit, body_author = i.reporter, body_at = i.created_at from projects p where p.key = i.project;
update items set rank = 'm' || lpad(to_hex(number), 8, '0');
with recursive tree as (
    select id, 1 as depth from items where parent is null
    union all select c.id, tree.depth + 1 from items c join tree on c.parent = tree.id)
update items i set depth = tree.depth from tree where tree.id = i.id and tree.depth > 1;
create unique index items_external_idx on items (external_source, external_id) where external_source is not null;
create index items_claim_idx on items (claim_until) where claim_until is not null;

-- What a description said before: the last 100 of each.
create table item_bodies (
    item_id uuid not null references items (id) on delete cascade,
    version int not null,
    body text compression lz4 not null,
    author text not null,
    created_at timestamptz not null,
    primary key (item_id, version)
);

-- An edge from an item to another one, or to a page. What waits is the author of its edge; the other side reads the same row.
create table relations (
    from_id uuid not null references items (id) on delete cascade,
    kind text not null check (kind in ('waiting_on', 'linked', 'duplicates', 'page')),
    -- The other item's id, or the page's.
    to_id uuid not null,
    note text not null default '',
    author text not null,
    author_kind text not null,
    created_at timestamptz not null,
    -- Set when the other side cannot know of it: it is gone, or has as many dependents as it may.
    one_sided boolean not null default false,
    -- An edge that was taken away stays, so that it can be said that it was there.
    cleared_at timestamptz,
    primary key (from_id, kind, to_id)
);
create index relations_to_idx on relations (to_id, kind) where cleared_at is null;

alter table comments
    -- Who owes an answer to it; empty when it asks nothing.
    add column asked text not null default '',
    add column decision jsonb,
    -- The question that it answers, and the option it chooses.
    add column answers uuid references comments (id),
    add column choice text not null default '',
    -- Set on a question when it is answered.
    add column answered_with uuid,
    add column answered_by text not null default '',
    add column answered_at timestamptz;
create index comments_asked_idx on comments (asked, created_at desc) where asked <> '' and answered_at is null;

-- A row of history may be about a project alone. txid orders rows for whoever follows: what is older than the oldest running
-- transaction will not be joined by anything earlier.
alter table history
    alter column item_id drop not null,
    add column project text not null default '',
    add column excerpt text not null default '',
    add column notified boolean not null default false,
    add column txid xid8 not null default pg_current_xact_id();
update history h set project = i.project from items i where i.id = h.item_id;
create index history_project_idx on history (project, position desc);
create index history_txid_idx on history (txid, position);

alter table projects
    add column target_date date,
    add column version int not null default 1,
    add column last_change_at timestamptz,
    add column last_change_by text not null default '',
    add column last_change_kind text not null default '';
