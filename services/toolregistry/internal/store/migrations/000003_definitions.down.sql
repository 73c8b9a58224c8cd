drop sequence definition_acceptances;
drop table changed_definitions;
drop table known_definitions;
drop table definitions;
