create index items_collaborators_idx on items using gin (collaborators) where collaborators <> '{}' and status_group < 2 and removed_at is null;
alter table projects add column next_number int not null default 1;
do $$
declare
    p record;
begin
    for p in select key from projects loop
        update projects set next_number = coalesce(pg_sequence_last_value(numbers_of(p.key)), 0) + 1 where key = p.key;
        execute format('drop sequence %I', 'numbers_' || p.key);
    end loop;
end $$;
drop trigger projects_numbers on projects;
drop function begin_numbers();
drop function numbers_of(text);
