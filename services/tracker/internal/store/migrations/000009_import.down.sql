drop table import_edges;
