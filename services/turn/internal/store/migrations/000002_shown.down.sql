alter table calls drop column audit_id;
drop table shown;
