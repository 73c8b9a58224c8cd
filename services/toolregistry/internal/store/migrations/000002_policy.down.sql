drop table approvals;
delete from calls where status = 'parked';
alter table calls drop constraint calls_status_check;
alter table calls add constraint calls_status_check check (status in ('ok', 'refused', 'failed'));
alter table calls drop column approval_id;
alter table calls drop column rule;
alter table calls drop column decision;
