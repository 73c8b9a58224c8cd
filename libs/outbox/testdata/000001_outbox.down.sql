drop table aggregates; drop table outbox;
