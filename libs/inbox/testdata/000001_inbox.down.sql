drop table effects; drop table dead_letters; drop table inbox;
