-- Which tables a cut can hold, and after which position each needs windows.
select d.oid, d.after
from penstock.table_due as d
where d.pipeline = %(name)s and d.state in ('ready', 'copied') and d.after is not null
