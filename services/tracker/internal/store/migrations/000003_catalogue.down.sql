drop table labels;
alter table projects drop column fields;
drop table catalogue;
