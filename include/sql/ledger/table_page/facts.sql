-- One table of a pipeline with its size since the last cut that moved it, its last copy, and the source's time through which a
-- table that stays behind is complete.
select
    t.oid, t.schema, t.name, t.target, t.state, t.identity, t.columns, t.complete_through, t.paused_slug, t.paused_reason,
    t.paused_at, t.verified_through, t.verified_at,
    t.differs or exists (
        select from penstock.key_share as s where s.pipeline = t.pipeline and s.oid = t.oid and s.differs
    ) as differs,
    t.update_missing, t.delete_missing, t.insert_existing, t.misfits,
    t.conflict_lsn is not null and coalesce(t.verified_through < t.conflict_lsn, true) as suspected,
    t.state = 'new' and t.joined_lsn is not null as waits,
    t.state = 'ready' and t.left_lsn is not null as leaves,
    t.paused_by,
    size.rows, size.files, size.bytes, size.published_at as moved_at,
    c.rows as copied_rows, c.bytes as copied_bytes, c.lsn as copied_lsn, c.started_at as copy_started_at,
    c.finished_at as copy_finished_at,
    behind.looked_at as paused_as_of
from penstock.table as t
join penstock.pipeline as p on p.name = t.pipeline
left join lateral (
    select tc.rows, tc.files, tc.bytes, cut.published_at
    from penstock.table_cut as tc
    join penstock.cut as cut on cut.number = tc.cut
    where tc.pipeline = t.pipeline and tc.oid = t.oid
    order by tc.cut desc
    limit 1
) as size on true
left join penstock.copy as c on c.pipeline = t.pipeline and c.id = t.copy_id and c.oid = t.oid
left join lateral (
    select c.looked_at
    from penstock.source_clock as c
    where c.pipeline = p.name and c.era = p.era and c.lsn <= t.complete_through
    order by c.lsn desc
    limit 1
) as behind on true
where t.pipeline = %(name)s and t.oid = %(oid)s and t.state <> 'dropped'
