-- What people keep for themselves, and what they were told.

-- One row a colleague, written when they first keep something.
create table persons (
    handle text primary key,
    -- Notices up to this place are read. The two lists are the exceptions on either side of it.
    seen_through bigint not null default 0,
    read_after bigint[] not null default '{}',
    unread_before bigint[] not null default '{}',
    -- Notices that were put off, with until when at the same index.
    snoozed bigint[] not null default '{}',
    snoozed_until timestamptz[] not null default '{}',
    -- Items in the order in which they are to be done, and who set that order when it was not the owner.
    priorities uuid[] not null default '{}',
    priorities_set_by text not null default '',
    priorities_set_at timestamptz,
    pinned_views uuid[] not null default '{}',
    favorites uuid[] not null default '{}',
    -- Null for the usual ones.
    primary_reasons text[],
    version int not null default 0,
    updated_at timestamptz not null default now()
);

-- Notices, as the notification service settled them: one a person and change. It is a copy, and may be read again from the topic.
create table notices (
    person text not null,
    -- The change's place in the order of writes.
    position bigint not null,
    item_id uuid not null,
    item_key text not null,
    title text not null,
    reason text not null,
    reasons text[] not null default '{}',
    kind text not null,
    actor text not null,
    actor_kind text not null,
    excerpt text not null default '',
    comment_id uuid,
    occurred_at timestamptz not null,
    primary key (person, position)
);
create index notices_reason_idx on notices (person, reason, position desc);
create index notices_occurred_at_idx on notices (occurred_at);
-- A destroyed item's notices go with it.
create index notices_item_idx on notices (item_id);

-- Changes of items of which it is settled who is told.
create table told (
    position bigint primary key,
    settled_at timestamptz not null default now()
);
create index told_settled_at_idx on told (settled_at);

-- How far everybody has been told. Up to settled no write is under way any more: a place in the order of writes is drawn before its
-- commit, so one that is seen later may be earlier. barrier becomes settled when every transaction that ran as it was taken is over.
create table told_through (
    one boolean primary key default true check (one),
    through bigint not null,
    settled bigint not null,
    barrier bigint not null,
    barrier_xid xid8 not null
);
insert into told_through (through, settled, barrier, barrier_xid)
    select coalesce(max(position), 0), coalesce(max(position), 0), coalesce(max(position), 0), pg_snapshot_xmax(pg_current_snapshot()) from history;

create table inbox (
    consumer text not null,
    event_id uuid not null,
    received_at timestamptz not null default now(),
    primary key (consumer, event_id)
);
create index inbox_received_at_idx on inbox (received_at);

create table dead_letters (
    id bigint generated always as identity primary key,
    topic text not null,
    key text not null,
    event_id uuid not null,
    payload bytea compression lz4 not null,
    headers jsonb not null default '{}',
    reason text not null,
    attempts int not null,
    created_at timestamptz not null default now(),
    redriven_at timestamptz
);

-- What a caller's day is made of. Most items have no helpers and no checklists, and stand in neither index.
create index items_collaborators_idx on items using gin (collaborators) where collaborators <> '{}' and status_group < 2 and removed_at is null;
create index items_checklists_idx on items using gin (checklists jsonb_path_ops) where checklists <> '[]' and status_group < 2 and removed_at is null;
