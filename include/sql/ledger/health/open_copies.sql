-- The copies and rebuilds under way, each with when it last got on as far as the ledger knows: a table of it was copied, or a part of
-- one built. The landing zone knows of parts of a table that were copied.
select 'copy' as kind, l.copy_id as id, count(*) filter (where l.state = 'copying') as tables,
    max(coalesce(l.copied_at, l.copy_started_at)) as moved_at, l.copy_id
from penstock.load as l
where
    l.pipeline = %(name)s and l.cause = 'first'
    and l.copy_id in (
        select t.copy_id
        from penstock.table as t
        join penstock.table_due as d on d.pipeline = t.pipeline and d.oid = t.oid
        where t.pipeline = %(name)s and d.state = 'copying'
    )
group by l.copy_id
union all
select l.cause, l.id, 1, max(greatest(l.changed_at, c.copied_at, c.copy_started_at)),
    max(l.copy_id) filter (where l.state = 'copying')
from penstock.load as l
left join penstock.load as c on c.pipeline = l.pipeline and c.copy_id = l.copy_id and c.cause in ('first', 'resync')
where l.pipeline = %(name)s and l.cause in ('resync', 'replay', 'shadow') and l.state in ('copying', 'building', 'ready')
group by l.cause, l.id
order by moved_at
