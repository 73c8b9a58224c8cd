drop table outbox;
drop sequence facts;
drop table eras;
drop table seat_leases;
drop table instances;
drop table nodes;
