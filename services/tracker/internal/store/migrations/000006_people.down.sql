drop index items_checklists_idx, items_collaborators_idx;
drop table dead_letters, inbox, told_through, told, notices, persons;
