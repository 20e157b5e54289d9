-- What became of a transaction. The xmax of a snapshot is no bound: it can be below a transaction whose commit is in the
-- WAL and waits for a standby. The age of an id counts from the next one to be given out, but only modulo 2^32.
select
  not past and age(xid::text::xid) <= 0 as future,
  case when past then pg_xact_status(xid::text::xid8) end as status
from (
  select %(xid)s::bigint as xid, %(xid)s::bigint < pg_snapshot_xmax(pg_current_snapshot())::text::bigint as past
) as asked
