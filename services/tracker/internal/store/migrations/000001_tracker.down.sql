drop table outbox;
drop table operations;
drop table history;
drop table comments;
drop table former_keys;
drop table items;
drop sequence positions;
drop table projects;
