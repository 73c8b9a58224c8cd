create table things (id int primary key);
