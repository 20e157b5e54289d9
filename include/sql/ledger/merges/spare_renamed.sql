-- The name of a table that left and was to be dropped is another table's now, which must not be dropped for it.
update penstock.table as t
set discard = false
where
    t.pipeline = %(name)s and t.discard
    and exists (
        select from penstock.table as o
        where o.pipeline = t.pipeline and o.oid <> t.oid and o.state <> 'dropped' and o.target = t.target
    )
