-- What work is made of: kinds of work and custom fields of the whole workspace, the fields that a project has for itself, and labels.

-- One row. The lists are small, always read whole and always replaced whole, so each is one value; versions count its changes.
create table catalogue (
    id boolean primary key default true check (id),
    -- Declared kinds of work; the builtin ones are the program's.
    types jsonb not null default '[]',
    types_version int not null default 0,
    fields jsonb not null default '[]',
    fields_version int not null default 0,
    updated_at timestamptz not null default now()
);
insert into catalogue default values;

alter table projects add column fields jsonb not null default '[]';

create table labels (
    project text not null references projects (key),
    slug text not null,
    label text not null,
    -- The label as a slug: two labels that read alike would be taken for each other.
    name text not null,
    color text not null default '',
    description text not null default '',
    archived boolean not null default false,
    author text not null,
    created_at timestamptz not null,
    primary key (project, slug)
);
create unique index labels_name_idx on labels (project, name);
