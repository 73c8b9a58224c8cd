-- What lists are read by, and saved views.
--
-- A list is one walk along an index per status group, merged: an order by time over "any of these groups" would sort all of them, and
-- what is open is a small part of what there is. So the groups lead, the order follows, and the id makes it total. The trash has an
-- index of its own and is in no other. What few items have (a date, an estimate) is indexed for those alone, since every change of an
-- item writes to each index that it stands in.
drop index items_updated_idx;
drop index items_project_updated_idx;
drop index items_created_idx;
drop index items_project_created_idx;
drop index items_assignee_open_idx;
create index items_updated_idx on items (status_group, updated_at, id) where removed_at is null;
create index items_created_idx on items (status_group, created_at, id) where removed_at is null;
create index items_project_updated_idx on items (project, status_group, updated_at, id) where removed_at is null;
create index items_project_created_idx on items (project, status_group, created_at, id) where removed_at is null;
create index items_project_lane_idx on items (project, status_group, rank, id) where removed_at is null;
create index items_assignee_idx on items (assignee, status_group, updated_at, id) where removed_at is null;
create index items_reporter_idx on items (reporter, status_group, updated_at, id) where removed_at is null;
create index items_status_entered_idx on items (status_group, status_entered_at, id) where removed_at is null;
create index items_title_order_idx on items ((lower(title) collate "C"), id) where removed_at is null;
create index items_priority_idx on items (status_group, priority, id) where priority > 0 and removed_at is null;
create index items_due_idx on items (status_group, due_at, id) where due_at is not null and removed_at is null;
create index items_start_idx on items (start_at, id) where start_at is not null and removed_at is null;
create index items_estimate_idx on items (estimate_minutes, id) where estimate_minutes is not null and removed_at is null;
create index items_points_idx on items (points, id) where points is not null and removed_at is null;
create index items_reopens_idx on items (reopens, id) where reopens > 0 and removed_at is null;
create index items_open_asks_idx on items (updated_at, id) where open_asks > 0 and removed_at is null;
create index items_removed_idx on items (removed_at, id) where removed_at is not null;
-- Few distinct values, so these are small.
create index items_type_idx on items (type, status_group) where removed_at is null;
create index items_filed_unit_idx on items (filed_unit, status_group) where removed_at is null;
create index items_routing_unit_idx on items (routing_unit, status_group) where removed_at is null;
create index if not exists items_watchers_idx on items using gin (watchers);
create index items_helpers_idx on items using gin (collaborators) where collaborators <> '{}' and removed_at is null;
create index items_labels_idx on items using gin (labels) where labels <> '{}' and removed_at is null;
create index items_fields_idx on items using gin (fields) where fields <> '{}' and removed_at is null;
create index relations_waiting_idx on relations (from_id, to_id) where kind = 'waiting_on' and cleared_at is null;
create index comments_asker_idx on comments (author, item_id) where asked <> '' and answered_at is null;

-- A saved query and the shape to show it in.
create table views (
    id uuid primary key,
    container text not null,
    name text not null,
    type text not null,
    params jsonb not null,
    -- Whose it is alone, by handle; empty for everybody's.
    owner text not null default '',
    protected boolean not null default false,
    first boolean not null default false,
    icon text not null default '',
    version int not null default 1,
    author text not null,
    created_at timestamptz not null,
    updated_at timestamptz not null
);
create index views_container_idx on views (container, name, id);
-- One view is shown first in its container.
create unique index views_first_idx on views (container) where first;
