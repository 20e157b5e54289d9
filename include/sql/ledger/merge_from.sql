-- Where the table of the next cut that has least stands; null when no table can be merged.
select min(case t.state when 'ready' then t.complete_through else c.lsn end)
from penstock.table as t
left join penstock.copy as c on c.pipeline = t.pipeline and c.id = t.copy_id and c.oid = t.oid
where t.pipeline = %(name)s and t.state in ('ready', 'copied')
