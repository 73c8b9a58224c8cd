drop table things;
