insert into penstock.copy (pipeline, id, oid, snapshot, lsn)
select %(name)s, %(copy_id)s, oid, %(snapshot)s, %(lsn)s
from unnest(%(oids)s::oid[]) as oid
on conflict (pipeline, id, oid) do nothing
