select
    pipeline, oid, schema, name, target, renamed_to, state, identity, columns,
    penstock.accepted(pipeline, oid, '', shape) as accepted, copy_id,
    complete_through, snapshot_id, paused_slug, paused_reason, paused_from_state,
    joined_lsn, joined_xid, left_lsn, discard, shows, lake_columns, remedy
from penstock.table
where
    pipeline = %(name)s
    and (%(oid)s::oid is null or oid = %(oid)s)
    and (%(states)s::text[] is null or state = any(%(states)s))
    and oid <> all(%(but)s::oid[])
order by schema, name, oid
