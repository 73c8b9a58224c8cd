drop table object_chunks;
drop table objects;
drop table project_files;
