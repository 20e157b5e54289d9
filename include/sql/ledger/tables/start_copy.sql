insert into penstock.copy (pipeline, id, oid, snapshot, lsn, needs_after)
select %(name)s, %(copy_id)s, oid, %(snapshot)s, %(lsn)s, penstock.needed_after(%(name)s, %(snapshot)s)
from unnest(%(oids)s::oid[]) as oid
on conflict (pipeline, id, oid) do nothing
