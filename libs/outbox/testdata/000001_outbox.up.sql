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

-- The aggregates that the tests' events are about.
create table aggregates (key text primary key, version int not null default 0);
