-- The tables that moved in a cut, as they are called now.
select t.schema, t.name, tc.inserts, tc.updates, tc.deletes, tc.truncates, tc.rows
from penstock.table_cut as tc
join penstock.cut as c on c.number = tc.cut
join penstock.table as t on t.pipeline = tc.pipeline and t.oid = tc.oid
where c.pipeline = %(name)s and c.attempt = %(attempt)s
order by t.schema, t.name
