insert into projects (key, name, unit, lead, epoch)
select 'P' || p, 'Project ' || p, 'unit-' || p, 'seat-' || p % (select seats from size), 1 from size, generate_series(1, projects) p
----
-- Whatever is decided by chance is decided by a hash of the item's number and a salt. Items whose numbers agree in their last six bits
-- are of one project, so that a parent is found 64 numbers before.
, item as (
    select n, md5('item ' || n)::uuid as id, (1 + floor(projects * power((n % 64) / 64.0, 2)))::int as p, seats, items, until,
        (hashint4(n) & 1023) as a, (hashint4(n + 1000000007) & 1023) as b, (hashint4(n + 500000003) & 1023) as c, (hashint4(n + 250000013) & 8191) as d,
        until - interval '3 years' * (1 - n::float8 / items) as filed
    from size, generate_series(1, items) n
), stands as (
    select *, case when a < 170 then 'todo' when a < 250 then 'in_progress' when a < 290 then 'in_review' when a < 650 then 'done' when a < 720 then 'cancelled' else 'closed' end as status,
        least(until, filed + interval '1 hour' * (b % 720)) as changed
    from item
)
insert into items (id, project, number, type, title, body, status, status_group, priority, reporter, reporter_kind, assignee, parent, depth, due_at, due_all_day, start_at,
    start_all_day, estimate_minutes, points, labels, fields, filed_unit, routing_unit, rank, watchers, collaborators, reopens, version, created_at, updated_at,
    status_entered_at, done_at, closed_at, open_asks, removed_at, removed_by, removed_kind, removed_with)
select id, 'P' || p, row_number() over (partition by p order by n), (array['task', 'task', 'task', 'bug', 'bug', 'story', 'chore', 'spike'])[1 + b % 8],
    (array['Renew', 'Review', 'Repair', 'Replace', 'Describe', 'Measure', 'Publish', 'Translate'])[1 + c % 8] || ' the ' ||
        (array['certificate', 'invoice', 'checkout', 'search page', 'importer', 'warehouse', 'newsletter', 'contract', 'dashboard', 'returns'])[1 + b % 10] || ' ' || n,
    repeat('What is to be done here is written down in a few lines of plain words. ', 1 + c % 6),
    status, case status when 'todo' then 0 when 'in_progress' then 1 when 'in_review' then 1 when 'closed' then 3 else 2 end,
    greatest(0, b % 8 - 3), 'seat-' || c % seats, 'agent', case when b % 7 = 0 then '' else 'seat-' || d % seats end,
    case when n > 64 and (n / 64) % 10 = 5 then md5('item ' || n - 64)::uuid end, case when n > 64 and (n / 64) % 10 = 5 then 2 else 1 end,
    case when c % 5 = 0 then date_trunc('day', filed + interval '1 day' * (d % 200)) end, c % 5 = 0,
    case when d % 20 = 0 then date_trunc('day', filed + interval '1 day' * (b % 60)) end, d % 20 = 0,
    case when d % 7 = 0 then 15 * (1 + b % 40) end, case when d % 5 = 0 then 1 + c % 13 end,
    case when d % 3 = 0 then array['label-' || b % 20] when d % 3 = 1 then '{}' else array['label-' || b % 20, 'label-' || 20 + c % 20] end,
    case when d % 10 = 0 then jsonb_build_object('sample-cost', c) else '{}' end,
    'unit-' || p, 'unit-' || p, 'm' || lpad(to_hex(n), 8, '0') || 'V', array['seat-' || c % seats, 'seat-' || d % seats],
    case when d % 20 = 1 then array['seat-' || a % seats] else '{}' end,
    case when d % 30 = 0 then 1 + b % 3 else 0 end, 3, filed, changed, changed,
    case when a >= 290 then changed end, case when a >= 720 then changed end, case when d % 200 = 1 then 1 else 0 end,
    case when d % 100 = 7 then changed end, case when d % 100 = 7 then 'seat-0' else '' end, case when d % 100 = 7 then 'agent' else '' end,
    case when d % 100 = 7 then id end
from stands
----
insert into relations (from_id, kind, to_id, author, author_kind, created_at, from_open, to_open)
select i.id, 'waiting_on', t.id, 'seat-0', 'agent', i.created_at, i.status_group < 2 and i.removed_at is null, t.status_group < 2 and t.removed_at is null
from size, generate_series(65, items, 29) n join items i on i.id = md5('item ' || n)::uuid join items t on t.id = md5('item ' || n - 64)::uuid
----
insert into comments (id, item_id, author, author_kind, body, asked, created_at)
select md5('ask ' || id)::uuid, id, reporter, 'agent', 'Which of the two do you want?', 'seat-' || number % (select seats from size), updated_at from items where open_asks > 0
----
insert into persons (handle, priorities) select 'seat-' || s, array(select id from items where assignee = 'seat-' || s and status_group < 2 order by id limit 20)
from size, generate_series(0, least(seats, 50) - 1) s
----
, counted as (select project, get_byte(uuid_send(id), 15) % 64 as shard, count(*) filter (where status_group = 0) as todo, count(*) filter (where status_group = 1) as active,
    count(*) filter (where status_group = 2) as done, count(*) filter (where status_group = 3) as closed from items where removed_at is null group by 1, 2)
insert into tallies (project, shard, todo, active, done, closed) select * from counted
----
select setval(numbers_of(project), max(number)) from items group by project
----
insert into history (position, item_id, project, kind, actor, actor_kind, actor_seat, fields, version, reassignments, created_at)
select (k - 1) * items::bigint + n, md5('item ' || n)::uuid, 'P' || (1 + floor(projects * power((n % 64) / 64.0, 2)))::int,
    case k when 1 then 'created' when 2 then 'status' else 'fields' end, 'seat-' || (hashint4(n + k) & 1023) % seats, 'agent', 'seat-' || (hashint4(n + k) & 1023) % seats,
    case k when 1 then '{}' else '{"priority": {"from": "none", "to": "high"}}' end::jsonb, k, 0,
    until - interval '3 years' * (1 - n::float8 / items) + interval '1 hour' * k
from size, generate_series(1, history) k, generate_series(1, items) n
----
select setval('positions', 1 + items::bigint * history) from size
