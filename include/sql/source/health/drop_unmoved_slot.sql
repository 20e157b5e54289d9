-- Looked at and dropped in one statement: only the very slot that was judged, where it stood, if no session uses it.
select pg_drop_replication_slot(s.slot_name)
from pg_replication_slots s
where s.slot_name = %(name)s
  and not s.active
  and s.slot_type = %(slot_type)s
  and s.plugin::text is not distinct from %(plugin)s::text
  and s.database::text is not distinct from %(database)s::text
  and s.restart_lsn is not distinct from %(restart)s::pg_lsn
  and s.confirmed_flush_lsn is not distinct from %(confirmed)s::pg_lsn
  and (to_jsonb(s) ->> 'inactive_since')::timestamptz is not distinct from %(inactive_since)s::timestamptz
