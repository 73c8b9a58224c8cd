-- How a result too large for the conversation is shown. A row is a model's answer, or a decision that took none: kept before it is
-- used, so that no resume pays for it again and the conversation stays the same, byte for byte.
create table shown (
    turn_id uuid not null,
    round int not null,
    ordinal int not null,
    -- Neither is set where the result is shown whole.
    text bytea compression lz4,
    text_digest bytea,
    -- Empty where no model was asked.
    provider text not null,
    model text not null,
    input_tokens bigint not null,
    output_tokens bigint not null,
    shown_at timestamptz not null,
    primary key (turn_id, round, ordinal)
);

-- Where the audit keeps the call.
alter table calls add column audit_id text not null default '';
