-- Bound to the transaction and to the place: a copy of it counts nowhere else, and not twice.
each := xid8send(pg_current_xact_id()) || pg_lsn_send(pg_current_wal_insert_lsn()) || each;
perform pg_logical_emit_message(true, {prefix}, sha256(outer_key || sha256(inner_key || each)) || substr(each, 9))
