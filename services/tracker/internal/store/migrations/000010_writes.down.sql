drop index items_title_key_idx;
drop function title_key;
drop index items_ready_idx;
alter table items drop column claim_kind;

alter table projects
    add column todo_count int not null default 0,
    add column active_count int not null default 0,
    add column done_count int not null default 0,
    add column closed_count int not null default 0,
    add column last_change_at timestamptz,
    add column last_change_by text not null default '',
    add column last_change_kind text not null default '';
update projects p set todo_count = f.todo, active_count = f.active, done_count = f.done, closed_count = f.closed, last_change_at = f.last_change_at,
    last_change_by = coalesce(f.last_change_by, ''), last_change_kind = coalesce(f.last_change_kind, '')
from project_facts f where f.project = p.key;
drop view project_facts;
drop table tallies;
