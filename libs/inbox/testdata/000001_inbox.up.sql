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

-- What the tests' handlers write: one row a run that committed, in order.
create table effects (id bigint generated always as identity primary key, key text not null, value text not null);
