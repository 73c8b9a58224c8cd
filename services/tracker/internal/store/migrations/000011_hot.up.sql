-- What hot writes wait for, and write for nothing.

-- Numbers of a project's items come from a sequence of its own, numbers_<key>: a counter in the project's row would let filings in one project
-- commit one after the other only.
create function numbers_of(project text) returns regclass language sql stable
    return format('%I', 'numbers_' || project)::regclass;

create function begin_numbers() returns trigger language plpgsql as $$
begin
    execute format('create sequence %I as int', 'numbers_' || new.key);
    return null;
end $$;
create trigger projects_numbers after insert on projects for each row execute function begin_numbers();

do $$
declare
    p record;
begin
    for p in select key, next_number from projects loop
        execute format('create sequence %I as int', 'numbers_' || p.key);
        if p.next_number > 1 then
            perform setval(numbers_of(p.key), p.next_number - 1);
        end if;
    end loop;
end $$;
alter table projects drop column next_number;

-- It held a part of what items_helpers_idx holds.
drop index items_collaborators_idx;
