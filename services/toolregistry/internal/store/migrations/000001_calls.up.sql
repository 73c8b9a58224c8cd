-- The audit of every call through the door, and the outbox its events leave by.

-- One row a call, whole: results are never cut, so both texts are compressed.
create table calls (
    audit_id        uuid primary key,
    call_id         text not null,
    principal       text not null,
    seat            text not null,
    turn_id         text not null,
    tool            text not null,
    source          text not null,
    arguments       text compression lz4 not null,
    result          text compression lz4 not null,
    status          text not null,
    refusal_class   text not null,
    outcome         text not null,
    operation_id    text not null,
    started_at      timestamptz not null,
    duration_micros bigint not null,
    -- Written from a turn's journal because the door's own row was lost. The door's own row replaces it.
    restored        boolean not null default false,
    constraint calls_status_check check (status in ('ok', 'refused', 'failed'))
);

-- Lists are newest first; the id settles equal times. The first index also serves the retention sweep.
create index calls_started_at_idx on calls (started_at desc, audit_id desc);
create index calls_seat_idx on calls (seat, started_at desc, audit_id desc) where seat <> '';
create index calls_tool_idx on calls (tool, started_at desc, audit_id desc);
create index calls_turn_id_idx on calls (turn_id, call_id) where turn_id <> '';
create index calls_refusal_class_idx on calls (refusal_class, started_at desc, audit_id desc) where refusal_class <> '';

-- The order of this service's facts. Gaps mean nothing.
create sequence call_facts as bigint;

create table outbox (
    id         bigint generated always as identity primary key,
    topic      text not null,
    key        text not null,
    event_id   uuid not null,
    type       text not null,
    payload    bytea compression lz4 not null,
    headers    jsonb not null default '{}',
    created_at timestamptz not null default now(),
    sent_at    timestamptz
);
create index outbox_unsent_idx on outbox (id) where sent_at is null;
