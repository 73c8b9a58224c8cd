-- The first schema of mcphost: what its nodes run, which node runs a seat's children, and the kit's outbox.

-- A node that reported lately is alive. Rows of the dead are swept.
create table nodes (
    node text primary key,
    reported_at timestamptz not null
);

-- One row for each child or session of a node, as it last changed.
create table instances (
    node text not null references nodes (node) on delete cascade,
    server text not null,
    -- Empty for a shared server.
    seat text not null default '',
    state text not null,
    -- Bounded, and cleaned of secrets.
    reason text not null default '',
    tool_count int not null default 0,
    starts int not null default 0,
    protocol text not null default '',
    state_at timestamptz not null,
    primary key (node, server, seat)
);

-- A seat's children are its identity: one node runs them. Held until expires_at by the clock of Postgres, renewed by the holder.
create table seat_leases (
    seat text primary key,
    node text not null,
    expires_at timestamptz not null
);

-- Which protocol a server spoke when it was last started with a configuration, so that an old server is not probed at each start.
create table eras (
    configuration bytea primary key,
    legacy boolean not null,
    seen_at timestamptz not null default now()
);

-- Places in the order of facts.
create sequence facts as bigint;

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
