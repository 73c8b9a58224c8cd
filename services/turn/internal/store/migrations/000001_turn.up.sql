-- Who runs a seat. The epoch is the fence: it grows with every change of hands, and each write of a turn must match it.
create table seats (
    seat text primary key,
    epoch bigint not null,
    holder text not null,
    expires_at timestamptz not null
);

-- Workers that are alive, so that each takes a fair share of the seats.
create table nodes (
    node text primary key,
    expires_at timestamptz not null
);

-- The mailbox: one row a delivery, for ever.
create table mail (
    delivery_id uuid primary key,
    seat text not null,
    conversation_key text not null,
    source text not null,
    surface text not null,
    obligation text not null,
    addressed boolean not null,
    wake_reason text not null,
    sender_id text not null,
    sender_name text not null,
    sender_seat text not null,
    sender_bot boolean not null,
    subject text not null,
    body text compression lz4 not null,
    url text not null,
    message_id text not null,
    depth int not null,
    occur_at timestamptz not null,
    receive_at timestamptz not null,
    state text not null default 'ready',
    reason text not null default '',
    attempts int not null default 0,
    available_at timestamptz not null default now(),
    turn_id uuid
);
-- What a seat works through, oldest first.
create index mail_waiting_idx on mail (seat, receive_at, delivery_id) where state in ('ready', 'held');
create index mail_receive_at_idx on mail (receive_at, delivery_id);
create index mail_dead_idx on mail (receive_at desc) where state = 'dead';

-- Texts over 8 KiB, once each.
create table payloads (
    digest bytea primary key,
    body bytea compression lz4 not null
);

-- One row an execution. fillfactor leaves room to count rounds in place.
create table turns (
    turn_id uuid primary key,
    work_key text not null,
    seat text not null,
    epoch bigint not null,
    conversation_key text not null,
    obligation text not null,
    surface text not null,
    revision_id text not null,
    title text not null,
    mail_ids uuid[] not null,
    base_digest bytea not null,
    opening bytea compression lz4,
    opening_digest bytea,
    state text not null default 'running',
    outcome text not null default '',
    error_kind text not null default '',
    summary text not null default '',
    resumes int not null default 0,
    round_count int not null default 0,
    call_count int not null default 0,
    input_tokens bigint not null default 0,
    output_tokens bigint not null default 0,
    scripted boolean not null default false,
    receive_at timestamptz not null,
    start_at timestamptz not null,
    end_at timestamptz
) with (fillfactor = 60);
-- The law that a seat has one turn at a time.
create unique index turns_running_seat_idx on turns (seat) where state = 'running';
-- What ended of late is looked at after an outage of the tool registry.
create index turns_end_at_idx on turns (end_at);
create index turns_seat_idx on turns (seat, turn_id);
create index turns_conversation_idx on turns (conversation_key, turn_id);

-- One row a model answer.
create table rounds (
    turn_id uuid not null,
    number int not null,
    provider text not null,
    model text not null,
    dialect text not null,
    text bytea compression lz4,
    text_digest bytea,
    raw bytea compression lz4,
    raw_digest bytea,
    stop text not null,
    input_tokens bigint not null,
    cached_tokens bigint not null,
    output_tokens bigint not null,
    start_at timestamptz not null,
    end_at timestamptz not null,
    primary key (turn_id, number)
);

-- One row a tool call: planned, dispatched, then done, failed or unknown.
create table calls (
    turn_id uuid not null,
    round int not null,
    ordinal int not null,
    call_id text not null,
    tool text not null,
    source text not null,
    args bytea compression lz4,
    args_digest bytea,
    operation_id text not null,
    state text not null,
    result bytea compression lz4,
    result_digest bytea,
    refusal_class text not null default '',
    outcome text not null default '',
    delivered text not null default '',
    start_at timestamptz,
    end_at timestamptz,
    primary key (turn_id, round, ordinal)
) with (fillfactor = 70);

-- Numbers the facts that this service publishes.
create sequence facts;

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
