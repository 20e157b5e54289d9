insert into penstock.copy (pipeline, id, oid, snapshot, lsn, needs_after, attnums)
select
    %(name)s, %(copy_id)s, t.oid, %(snapshot)s, %(lsn)s, penstock.needed_after(%(name)s, %(snapshot)s),
    penstock.attnums(t.columns)
from penstock.table as t
where t.pipeline = %(name)s and t.oid = any(%(oids)s::oid[])
on conflict (pipeline, id, oid) do nothing
