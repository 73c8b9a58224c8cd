-- The tracker's first schema: projects, items, their comments and history, and the kit's tables.

-- Where work is filed. Name, purpose, unit and lead are the org chart's and are written by a company revision alone; epoch is that
-- revision's, so that a late node cannot write an older chart over a newer one.
create table projects (
    key text primary key,
    name text not null,
    purpose text not null default '',
    unit text not null default '',
    lead text not null default '',
    default_assignee text not null default '',
    archived boolean not null default false,
    epoch int not null,
    next_number int not null default 1,
    -- Kept by every write, so that a list of projects counts nothing.
    todo_count int not null default 0,
    active_count int not null default 0,
    done_count int not null default 0,
    closed_count int not null default 0,
    created_at timestamptz not null default now(),
    updated_at timestamptz not null default now()
);

-- Places in the tracker's order of writes. Drawn after the item's row lock, so that within an item places and commits agree.
create sequence positions as bigint;

create table items (
    id uuid primary key,
    project text not null references projects (key),
    number int not null,
    type text not null,
    title text not null,
    body text compression lz4 not null default '',
    status text not null,
    status_group smallint not null,
    priority smallint not null default 0,
    reporter text not null,
    reporter_kind text not null,
    assignee text not null default '',
    parent uuid references items (id),
    due text not null default '',
    estimate_minutes int,
    watchers text[] not null default '{}',
    muted text[] not null default '{}',
    reassignments int not null default 0,
    reopens int not null default 0,
    version int not null default 1,
    created_at timestamptz not null,
    updated_at timestamptz not null,
    status_entered_at timestamptz not null,
    done_at timestamptz,
    closed_at timestamptz,
    constraint items_key unique (project, number)
);
-- Lists are read by keyset in one of two orders, within a project or over all of them.
create index items_updated_idx on items (updated_at desc, id);
create index items_project_updated_idx on items (project, updated_at desc, id);
create index items_created_idx on items (created_at desc, id);
create index items_project_created_idx on items (project, created_at desc, id);
-- Somebody's open work is what is asked for most.
create index items_assignee_open_idx on items (assignee, updated_at desc, id) where status_group < 2;
create index items_parent_idx on items (parent) where parent is not null;
create index items_title_idx on items using gin (title public.gin_trgm_ops);

-- Keys that an item had before it moved; they resolve for ever.
create table former_keys (
    key text primary key,
    item_id uuid not null references items (id),
    created_at timestamptz not null default now()
);
create index former_keys_item_idx on former_keys (item_id);

create table comments (
    id uuid primary key,
    item_id uuid not null references items (id),
    author text not null,
    author_kind text not null,
    author_seat text not null default '',
    body text compression lz4 not null,
    reply_to uuid references comments (id),
    mentions text[] not null default '{}',
    turn_id text not null default '',
    created_at timestamptz not null
);
create index comments_item_idx on comments (item_id, created_at desc, id desc);

-- One row a commit, for ever. It describes and does not quote.
create table history (
    position bigint primary key,
    item_id uuid not null references items (id),
    kind text not null,
    actor text not null,
    actor_kind text not null,
    actor_seat text not null default '',
    fields jsonb not null default '{}',
    comment_id uuid,
    turn_id text not null default '',
    version int not null,
    reassignments int not null,
    created_at timestamptz not null
);
create index history_item_idx on history (item_id, position desc);

-- The kit's tables: see libs/ops and libs/outbox.
create table operations (
    operation_id text primary key,
    tool text not null,
    digest bytea not null,
    result bytea not null default '',
    position text not null default '',
    created_at timestamptz not null default now()
);
create index operations_created_at_idx on operations (created_at);

create table outbox (
    id bigint generated always as identity primary key,
    topic text not null,
    key text not null,
    event_id uuid not null,
    type text not null,
    payload bytea compression lz4 not null,
    headers jsonb not null default '{}',
    created_at timestamptz not null default now(),
    sent_at timestamptz
);
create index outbox_unsent_idx on outbox (id) where sent_at is null;
