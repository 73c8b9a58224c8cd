-- The knowledge base's first schema: containers, pages, their revisions, links and history, the search index, and the kit's tables.

-- Where pages are kept. A company revision alone writes them; epoch is its, so that a late node cannot write an older chart over a newer one.
create table containers (
    key text primary key,
    name text not null,
    purpose text not null default '',
    unit text not null default '',
    epoch int not null,
    created_at timestamptz not null default now(),
    updated_at timestamptz not null default now()
);

-- Places in the order of writes, drawn after the page's row lock.
create sequence positions as bigint;

create table pages (
    id uuid primary key,
    container text not null references containers (key),
    parent uuid references pages (id),
    title text not null,
    -- The title as an address: see internal/page.
    address text not null,
    body text compression lz4 not null,
    status text not null,
    labels text[] not null default '{}',
    watchers text[] not null default '{}',
    muted text[] not null default '{}',
    author text not null,
    author_kind text not null,
    editor text not null,
    version int not null default 1,
    revision int not null default 1,
    created_at timestamptz not null,
    updated_at timestamptz not null
);
-- A title is an address, and the first writer has it.
create unique index pages_address on pages (container, address) where status <> 'trashed';
create index pages_container_title_idx on pages (container, title, id) where status = 'published';
create index pages_parent_idx on pages (parent, title) where parent is not null;
create index pages_title_idx on pages using gin (title public.gin_trgm_ops);
create index pages_labels_idx on pages using gin (labels);

-- What a page said, version by version.
create table revisions (
    page_id uuid not null references pages (id),
    revision int not null,
    title text not null,
    body text compression lz4 not null,
    author text not null,
    author_kind text not null,
    message text not null default '',
    turn_id text not null default '',
    created_at timestamptz not null,
    primary key (page_id, revision)
);

-- Which page links to which, read by the page that is linked to. The far end need not exist yet.
create table links (
    from_page uuid not null references pages (id),
    to_page uuid not null,
    primary key (from_page, to_page)
);
create index links_to_idx on links (to_page);

-- The search index, apart from the pages so that a list reads none of it. It is derived.
create table page_search (
    page_id uuid primary key references pages (id),
    document tsvector not null
);
create index page_search_document_idx on page_search using gin (document);

-- One row a commit, for ever. It describes and does not quote.
create table history (
    position bigint primary key,
    page_id uuid not null references pages (id),
    kind text not null,
    actor text not null,
    actor_kind text not null,
    actor_seat text not null default '',
    fields jsonb not null default '{}',
    turn_id text not null default '',
    version int not null,
    created_at timestamptz not null
);
create index history_page_idx on history (page_id, position desc);

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
