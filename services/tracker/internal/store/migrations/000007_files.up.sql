-- Files of projects: what is known of them, and their bytes when no object store is configured.

create table project_files (
    project text not null references projects (key),
    -- Compared byte by byte, so that a folder's files stand together.
    path text collate "C" not null,
    content_type text not null,
    hash bytea not null,
    size bigint not null,
    -- Where the content is; null once it was removed.
    object_id uuid,
    version int not null,
    created_by text not null,
    created_at timestamptz not null,
    updated_by text not null,
    updated_at timestamptz not null,
    removed_at timestamptz,
    primary key (project, path)
);

-- Every object that was ever begun and may still be there. One that is in no file's use is deleted from the store, then from here.
create table objects (
    id uuid primary key,
    created_at timestamptz not null default now(),
    live boolean not null default false,
    dropped_at timestamptz
);
create index objects_dead_idx on objects (created_at) where not live;

create table object_chunks (
    object_id uuid not null,
    number int not null,
    data bytea not null,
    primary key (object_id, number)
);
-- Parts of a chunk are read without unpacking all of it; files are seldom worth compressing.
alter table object_chunks alter column data set storage external;
