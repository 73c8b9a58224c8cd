-- What the tools of MCP servers are known to be, so that a definition that changes is noticed.

-- A definition as a person judges it: name, description, schemas, annotations.
create table definitions (
    digest     text primary key,
    definition text compression lz4 not null
);

create table known_definitions (
    server      text not null,
    -- The seat whose instance of the server showed it; empty for a shared server, and for what an operator accepted for all seats.
    seat        text not null,
    tool        text not null,
    digest      text not null references definitions (digest),
    -- Empty: it was the first that was seen.
    accepted_by text not null default '',
    known_at    timestamptz not null default now(),
    primary key (server, seat, tool, digest)
);

-- What an instance shows now in the place of what is known.
create table changed_definitions (
    server  text not null,
    seat    text not null,
    tool    text not null,
    digest  text not null references definitions (digest),
    seen_at timestamptz not null default now(),
    primary key (server, seat, tool)
);

create index known_definitions_digest_idx on known_definitions (digest);
create index changed_definitions_digest_idx on changed_definitions (digest);

-- Moves when an operator accepts something: other processes then judge anew.
create sequence definition_acceptances as bigint;
