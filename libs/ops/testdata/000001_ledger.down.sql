drop table effects; drop table operations;
