-- What the structure of work needs: order, trees, the trash, and items that were destroyed.

-- A rank never ends in the least digit, or nothing would fit between it and the shorter rank of the same value.
update items set rank = 'm' || lpad(to_hex(number), 8, '0') || 'V' where rank = '' or rank = 'm' || lpad(to_hex(number), 8, '0');
create index items_project_rank_idx on items (project, rank, id);

-- What a removal took along, and what was merged into an item.
create index items_removed_with_idx on items (removed_with) where removed_with is not null;
create index items_merged_into_idx on items (merged_into) where merged_into is not null;

-- Without them, deleting a comment reads every comment for one that refers to it.
create index comments_reply_to_idx on comments (reply_to) where reply_to is not null;
create index comments_answers_idx on comments (answers) where answers is not null;

-- That an item was destroyed outlives it, in one row of history. Keys that it had are never given again, as a project only counts up.
alter table history drop constraint history_item_id_fkey;
create table purged_items (
    id uuid primary key,
    key text not null,
    purged_at timestamptz not null
);

-- Edges that the other side does not know of yet: what the duty that repairs them looks at.
create index relations_one_sided_idx on relations (to_id, created_at) where one_sided and cleared_at is null;
