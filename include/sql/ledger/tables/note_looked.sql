-- Only where the ledger has what the look found, and nothing is open of it: whoever has changed the table's facts since decides by a look of its own.
update penstock.table as t
set looked = l.stamp
from jsonb_to_recordset(%(tables)s) as l (oid oid, stamp text, shape jsonb)
where
    t.pipeline = %(name)s and t.oid = l.oid and t.state = any(%(states)s) and t.shape = l.shape
    and not exists (
        select from penstock.open_question as q where q.pipeline = t.pipeline and q.oid = t.oid and q.load = ''
    )
    and t.looked is distinct from l.stamp
