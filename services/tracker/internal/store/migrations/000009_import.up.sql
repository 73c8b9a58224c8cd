-- Edges of imported items whose other end may not be here yet, by their names in the other tracker. An edge goes when both ends are
-- here, or when it turns out that it cannot be.
create table import_edges (
    source text not null,
    from_external text not null,
    kind text not null check (kind in ('parent', 'waiting_on')),
    to_external text not null,
    primary key (source, from_external, kind, to_external)
);
create index import_edges_to_idx on import_edges (source, to_external);
