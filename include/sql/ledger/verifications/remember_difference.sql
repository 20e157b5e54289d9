-- The shares are about to be cut again: what differed in one of them differs in the table.
update penstock.table as t
set differs = true
where
    t.pipeline = %(name)s and t.oid = %(oid)s
    and exists (select from penstock.key_share as s where s.pipeline = t.pipeline and s.oid = t.oid and s.differs)
