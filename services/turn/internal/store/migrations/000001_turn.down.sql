drop table dead_letters, inbox, outbox, calls, rounds, turns, payloads, mail, nodes, seats;
drop sequence facts;
