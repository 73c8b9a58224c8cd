drop table outbox;
drop table operations;
drop table tokens;
drop table secrets;
drop table active;
drop table revisions;
