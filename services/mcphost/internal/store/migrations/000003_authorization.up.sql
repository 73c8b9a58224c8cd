-- OAuth at MCP servers. What is sealed is AES-256-GCM under a key that Postgres never sees, and bound to its row.

-- Clients that an authorization server registered for us. One is never shown to another issuer.
create table authorization_clients (
    server text not null,
    issuer text not null,
    redirect_uri text not null,
    sealed bytea not null,
    registered_at timestamptz not null default now(),
    primary key (server, issuer, redirect_uri)
);

-- Which issuer a declared client is of: the first that the server named. Its secret is shown to no other.
create table authorization_issuers (
    server text not null,
    client_id text not null,
    issuer text not null,
    primary key (server, client_id)
);

-- Tokens, one for each whom a server is used as. A server that moves needs another: a token is for one resource.
create table authorization_tokens (
    server text not null,
    -- Empty for a shared server.
    seat text not null default '',
    resource text not null,
    sealed bytea not null,
    changed_at timestamptz not null default now(),
    primary key (server, seat, resource)
);

-- Consents that an operator was asked for, by a digest of the state that the browser brings back. Each is taken once.
create table authorization_consents (
    state bytea primary key,
    server text not null,
    seat text not null default '',
    -- A digest of what is asked: who asks the same again keeps the first.
    question bytea not null,
    sealed bytea not null,
    expires_at timestamptz not null,
    unique (server, seat)
);
