drop table dead_letters;
drop table inbox;
drop table notices;
drop table work_swept;
drop table work_changes;
delete from deliveries where webhook_id is null;
alter table deliveries
    drop column position,
    drop column surface,
    alter column webhook_id set not null;
