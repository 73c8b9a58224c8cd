-- Where the other nodes reach a node: they hand on what is for a seat that it holds. Empty for one that nobody can reach.
alter table nodes add column url text not null default '';
