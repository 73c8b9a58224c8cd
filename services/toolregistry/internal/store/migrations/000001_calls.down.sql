drop table outbox;
drop sequence call_facts;
drop table calls;
