alter table projects drop column target_date, drop column version, drop column last_change_at, drop column last_change_by, drop column last_change_kind;

drop index history_txid_idx, history_project_idx;
delete from history where item_id is null;
alter table history drop column txid, drop column notified, drop column excerpt, drop column project, alter column item_id set not null;

drop index comments_asked_idx;
alter table comments drop column asked, drop column decision, drop column answers, drop column choice, drop column answered_with,
    drop column answered_by, drop column answered_at;

drop table relations;
drop table item_bodies;

drop index items_claim_idx, items_external_idx;
alter table items add column due text not null default '';
update items set due = to_char(due_at at time zone 'UTC', 'YYYY-MM-DD') where due_at is not null;
alter table items drop column due_at, drop column due_all_day, drop column start_at, drop column start_all_day, drop column points, drop column labels,
    drop column fields, drop column checklists, drop column collaborators, drop column filed_unit, drop column routing_unit, drop column rank,
    drop column depth, drop column body_version, drop column body_author, drop column body_at, drop column claim_holder, drop column claim_until,
    drop column open_asks, drop column merged_into, drop column removed_at, drop column removed_by, drop column removed_kind,
    drop column removed_with, drop column external_source, drop column external_id, drop column external_url;
