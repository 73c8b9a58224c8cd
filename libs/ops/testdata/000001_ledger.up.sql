create table operations (
    operation_id text primary key,
    tool text not null,
    digest bytea not null,
    result bytea not null default '',
    position text not null default '',
    created_at timestamptz not null default now()
);
create index operations_created_at_idx on operations (created_at);

-- What the tests' operations write.
create table effects (id bigint generated always as identity primary key, operation text not null);
