-- Changes of work items reach seats, too: by no webhook, with a place in the tracker's order, and with an answer owed on a surface of
-- ours.
alter table deliveries
    alter column webhook_id drop not null,
    add column surface text not null default '',
    add column position text not null default '';

-- What was decided about each change that was read from the tracker. The key is what makes a change one, however often it is read.
create table work_changes (
    epoch int not null,
    sequence bigint not null,
    -- Grows with every change that was settled.
    fact bigint generated always as identity,
    item_id uuid not null,
    kind text not null,
    state text not null check (state in ('told', 'nobody', 'quiet')),
    -- What became of it for each colleague, and why.
    decisions jsonb not null default '[]',
    settled_at timestamptz not null default now(),
    primary key (epoch, sequence)
);
-- For the sweep alone; rows come in by time, so a summary of blocks will do.
create index work_changes_settled_at_idx on work_changes using brin (settled_at);

-- Up to where changes were swept, so that an old one can be told from one that never was.
create table work_swept (
    epoch int primary key,
    sequence bigint not null
);

-- What persons were told, once a person and change.
create table notices (
    notice_id uuid primary key,
    person text not null,
    epoch int not null,
    sequence bigint not null,
    item_id uuid not null,
    item_key text not null,
    title text not null,
    -- The strongest first.
    reasons text[] not null,
    kind text not null,
    actor text not null,
    actor_kind text not null,
    excerpt text not null,
    comment_id text not null,
    occurred_at timestamptz not null,
    created_at timestamptz not null default now(),
    constraint notices_change_key unique (person, epoch, sequence)
);
create index notices_created_at_idx on notices using brin (created_at);

-- The kit's tables: see libs/inbox.
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
