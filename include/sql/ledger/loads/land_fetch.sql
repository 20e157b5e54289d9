-- Of a table that still waits for it, and which the lake has from before.
update penstock.load as l
set state = 'landed', files = %(files)s, rows = %(rows)s, bytes = %(bytes)s, copied_at = clock_timestamp()
from penstock.table as t
where
    l.pipeline = %(name)s and l.copy_id = %(copy_id)s and l.oid = %(oid)s and l.cause in ('columns', 'partitions')
    and l.state = 'copying'
    and t.pipeline = l.pipeline and t.oid = l.oid
    and t.paused_from_state = 'ready' and t.remedy = 'read' and t.left_lsn is null
    and t.complete_through < l.lsn
