-- Main shows the same rows in other files. Only while no merge has begun since, and only where main was as expected.
update penstock.table as t
set snapshot_id = c.snapshot_id
from jsonb_to_recordset(%(tables)s) as c (oid oid, expected bigint, snapshot_id bigint), penstock.pipeline as p
where
    p.name = %(name)s and p.merge_attempt = %(attempt)s
    and t.pipeline = p.name and t.oid = c.oid and t.snapshot_id = c.expected
