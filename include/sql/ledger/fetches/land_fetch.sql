-- Of a table that still waits for it, and which the lake has from before.
update penstock.column_fetch as f
set state = 'landed', files = %(files)s, rows = %(rows)s, bytes = %(bytes)s, landed_at = clock_timestamp()
from penstock.table as t
where
    f.pipeline = %(name)s and f.id = %(id)s and f.oid = %(oid)s and f.state = 'copying'
    and t.pipeline = f.pipeline and t.oid = f.oid
    and t.paused_from_state = 'ready' and t.remedy = 'read' and t.left_lsn is null
    and t.complete_through < f.lsn
