-- The fetches whose files are read: those under way, and those that the lake does not have yet.
select f.id
from penstock.column_fetch as f
join penstock.table as t on t.pipeline = f.pipeline and t.oid = f.oid
where f.pipeline = %(name)s and (f.state = 'copying' or t.complete_through < f.lsn)
