-- The fetches whose files are read: those under way, and those that the lake does not have yet.
select l.copy_id
from penstock.load as l
join penstock.table as t on t.pipeline = l.pipeline and t.oid = l.oid
where
    l.pipeline = %(name)s and l.cause in ('columns', 'partitions') and (l.state = 'copying' or t.complete_through < l.lsn)
