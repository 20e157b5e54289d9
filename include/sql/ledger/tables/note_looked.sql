-- Only where the ledger has what the look found: whoever has changed the table's facts since decides by a look of its own.
update penstock.table as t
set looked = l.stamp
from jsonb_to_recordset(%(tables)s) as l (oid oid, stamp text, accepted jsonb)
where
    t.pipeline = %(name)s and t.oid = l.oid and t.state = any(%(states)s) and t.accepted - 'gone' = l.accepted - 'gone'
    and t.looked is distinct from l.stamp
