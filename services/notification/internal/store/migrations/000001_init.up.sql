-- What vendors sent, in the order in which it was committed. A row is a webhook
-- that was acknowledged: it is routed from here, and kept for a while to
-- recognise repetitions and to explain decisions.
create table webhooks (
    id bigint generated always as identity primary key,
    source text not null,
    -- The hook or app that it came through.
    endpoint text not null,
    -- The vendor's id of the delivery, unique in its endpoint.
    delivery text not null,
    event text not null,
    -- The body is a form with the payload in it.
    form boolean not null,
    body bytea compression lz4 not null,
    received_at timestamptz not null default now(),
    -- Webhooks of one lane are routed one after another.
    lane smallint not null,
    state text not null default 'received' check (state in ('received', 'routed', 'ignored', 'dead')),
    reason text not null default '',
    -- What was decided about each seat, and why.
    decisions jsonb not null default '[]',
    attempts integer not null default 0,
    settled_at timestamptz,
    redriven_at timestamptz,
    constraint webhooks_delivery_key unique (source, endpoint, delivery)
);

create index webhooks_received_idx on webhooks (lane, id) where state = 'received';
create index webhooks_dead_idx on webhooks (id) where state = 'dead' or redriven_at is not null;
-- For the sweep alone; rows come in by time, so a summary of blocks will do.
create index webhooks_received_at_idx on webhooks using brin (received_at);

-- A seat's mail. The unique key is what makes a message one delivery, whatever
-- number of webhooks tell of it.
create table deliveries (
    sequence bigint generated always as identity primary key,
    delivery_id uuid not null,
    seat text not null,
    conversation_key text not null,
    message_id text not null,
    message_revision text not null,
    source text not null,
    obligation text not null,
    addressed boolean not null,
    reason text not null,
    sender_vendor_id text not null,
    sender_name text not null,
    sender_seat text not null,
    sender_bot boolean not null,
    -- No person sent it.
    machine boolean not null,
    subject text not null,
    body text compression lz4 not null,
    url text not null,
    occurred_at timestamptz not null,
    received_at timestamptz not null,
    created_at timestamptz not null default now(),
    webhook_id bigint not null,
    constraint deliveries_id_key unique (delivery_id),
    constraint deliveries_message_key unique (seat, conversation_key, message_id, message_revision)
);

create index deliveries_conversation_idx on deliveries (conversation_key, seat, created_at);
create index deliveries_seat_idx on deliveries (seat, sequence);

-- Answers on their way to a vendor.
create table outbound (
    sequence bigint generated always as identity primary key,
    message_id uuid not null,
    seat text not null,
    surface text not null,
    conversation_key text not null,
    body text compression lz4 not null,
    -- queued -> sending -> posted | failed; sending -> unknown -> posted | queued
    state text not null default 'queued' check (state in ('queued', 'sending', 'unknown', 'posted', 'failed')),
    attempts integer not null default 0,
    -- How often a post in doubt was looked for.
    lookups integer not null default 0,
    detail text not null default '',
    -- The class of the refusal, once failed.
    failure text not null default '',
    -- What the vendor calls the message, once posted.
    vendor_id text not null default '',
    url text not null default '',
    turn_id text not null default '',
    created_at timestamptz not null default now(),
    available_at timestamptz not null default now(),
    -- When it was last sent, to know where to look for it.
    sent_at timestamptz,
    posted_at timestamptz,
    constraint outbound_message_id_key unique (message_id)
);

create index outbound_open_idx on outbound (surface, seat, conversation_key, sequence)
    where state in ('queued', 'sending', 'unknown');
create index outbound_vendor_idx on outbound (surface, vendor_id) where vendor_id <> '';
create index outbound_seat_idx on outbound (seat, sequence);

-- One worker at a time posts with a seat's credential. The fence grows with
-- every holder, and every write of a worker must match it.
create table outbound_lanes (
    surface text not null,
    seat text not null,
    owner text not null default '',
    fence bigint not null default 0,
    lease_until timestamptz not null default '-infinity',
    -- The vendor asked for quiet until then.
    available_at timestamptz not null default '-infinity',
    primary key (surface, seat)
);

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
