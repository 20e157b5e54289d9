-- What only one table's page shows: its shape, when it moved last, its last copy, and the source's time through which a table that
-- stays behind is complete.
select
    t.identity, t.columns, size.files, t.paused_at, size.published_at as moved_at,
    case when c.copy_started_at is not null and c.lsn is not null then json_build_object(
        'rows', coalesce(c.rows, 0), 'bytes', coalesce(c.bytes, 0), 'lsn', c.lsn, 'started_at', c.copy_started_at, 'finished_at', c.copied_at,
        'seconds', extract(epoch from c.copied_at - c.copy_started_at)
    ) end as copy,
    behind.looked_at as paused_as_of
from penstock.table as t
join penstock.pipeline as p on p.name = t.pipeline
left join lateral (
    select tc.files, cut.published_at
    from penstock.table_cut as tc
    join penstock.cut as cut on cut.number = tc.cut
    where tc.pipeline = t.pipeline and tc.oid = t.oid
    order by tc.cut desc
    limit 1
) as size on true
left join penstock.load as c
    on
        c.pipeline = t.pipeline and c.copy_id = t.copy_id and c.oid = t.oid
        and c.cause in ('first', 'resync') and c.files is not null
left join lateral (
    select c.looked_at
    from penstock.source_clock as c
    where c.pipeline = p.name and c.era = p.era and c.lsn <= t.complete_through
    order by c.lsn desc
    limit 1
) as behind on true
where t.pipeline = %(name)s and t.oid = %(oid)s and t.state <> 'dropped'
