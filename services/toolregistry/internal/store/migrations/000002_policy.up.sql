-- What the policy decided about a call, and the calls that wait for a person.

alter table calls add column decision text not null default '';
alter table calls add column rule text not null default '';
alter table calls add column approval_id text not null default '';
alter table calls drop constraint calls_status_check;
alter table calls add constraint calls_status_check check (status in ('ok', 'refused', 'failed', 'parked'));

create table approvals (
    approval_id      uuid primary key,
    state            text not null,
    -- What makes a call the same again: its operation, or its place in its turn. One call never asks twice.
    ask_key          text not null,
    seat             text not null,
    display_name     text not null,
    turn_id          text not null,
    work_key         text not null,
    conversation_key text not null,
    revision_id      text not null,
    tool             text not null,
    source           text not null,
    -- Of the tool's definition that was called; another definition needs another question.
    digest           text not null,
    -- Exactly what will be sent, and what people are shown of it.
    arguments        text compression lz4 not null,
    arguments_shown  text compression lz4 not null,
    call_id          text not null,
    operation_id     text not null,
    -- Making the call twice does no more than making it once.
    repeatable       boolean not null,
    rule             text not null,
    reason           text not null,
    created_at       timestamptz not null,
    expires_at       timestamptz not null,
    decided_by       text not null default '',
    decided_at       timestamptz,
    note             text not null default '',
    call_status      text not null default '',
    result           text compression lz4 not null default '',
    refusal_class    text not null default '',
    outcome          text not null default '',
    reached          text[] not null default '{}',
    audit_id         text not null default '',
    -- Who makes the approved call, and until when nobody else may.
    runner           text not null default '',
    run_until        timestamptz,
    constraint approvals_ask_key unique (seat, ask_key),
    constraint approvals_state_check check (state in ('waiting', 'approved', 'denied', 'expired', 'cancelled')),
    constraint approvals_call_status_check check (call_status in ('', 'running', 'ok', 'refused', 'failed', 'unknown')),
    constraint approvals_call_check check ((state = 'approved') = (call_status <> ''))
);

create index approvals_created_at_idx on approvals (created_at desc, approval_id desc);
create index approvals_seat_idx on approvals (seat, created_at desc, approval_id desc);
-- What the sweep looks for, and what people look for first.
create index approvals_waiting_idx on approvals (expires_at) where state = 'waiting';
create index approvals_running_idx on approvals (run_until) where call_status = 'running';
