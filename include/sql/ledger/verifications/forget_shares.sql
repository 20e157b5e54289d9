-- They are about to be cut again: what differed in one of them differs in the table.
with
    gone as (delete from penstock.key_share where pipeline = %(name)s and oid = %(oid)s returning differs)
update penstock.table as t
set differs = true
where t.pipeline = %(name)s and t.oid = %(oid)s and exists (select from gone where gone.differs)
