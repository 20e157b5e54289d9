-- What became of a transaction, null where that is too long ago to be known, too. The xmax of a snapshot is no bound: it can be below a
-- transaction whose commit is in the WAL and waits for a standby. The age of an id counts from the next one to be given out, but
-- only modulo 2^32.
select
  case
    when past then case when pg_xact_status(xid::text::xid8) = 'aborted' then 'it was rolled back' end
    when age(xid::text::xid) <= 0 then 'it has not been given out yet'
  end
from (
  select %(xid)s::bigint as xid, %(xid)s::bigint < pg_snapshot_xmax(pg_current_snapshot())::text::bigint as past
) as asked
