-- A revision is a document that was stored; its row never changes. epoch is 0 for one that lost the race to be active.
create table revisions (
    revision_id uuid primary key,
    parent_id uuid constraint revisions_parent_fk references revisions,
    document text compression lz4 not null,
    digest bytea not null,
    created_by text not null,
    summary text not null,
    created_at timestamptz not null,
    epoch integer not null default 0,
    activated_at timestamptz
);

create unique index revisions_epoch_idx on revisions (epoch) where epoch > 0;

-- The same document that loses to the same parent again is the same inert revision.
create unique index revisions_inert_idx on revisions (parent_id, digest) nulls not distinct where epoch = 0;

-- One row, so that its lock is the lock of activation. revision_id is null until the first.
create table active (
    one boolean primary key default true constraint active_one check (one),
    revision_id uuid constraint active_revision_fk references revisions
);

insert into active default values;

-- Sealed values; the key is not in the database.
create table secrets (
    name text primary key,
    sealed bytea not null,
    updated_at timestamptz not null
);

-- hash is the SHA-256 of the token's text, which is kept nowhere. seat is empty for a machine's token.
create table tokens (
    token_id uuid primary key,
    name text not null,
    seat text not null,
    hint text not null,
    hash bytea not null,
    created_by text not null,
    created_at timestamptz not null,
    expires_at timestamptz,
    revoked_at timestamptz
);

create unique index tokens_hash_idx on tokens (hash);

-- The ledger of operations (libs/ops).
create table operations (
    operation_id text primary key,
    tool text not null,
    digest bytea not null,
    result bytea not null default '',
    position text not null default '',
    created_at timestamptz not null default now()
);

create index operations_created_at_idx on operations (created_at);

-- Events on their way out (libs/outbox).
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
