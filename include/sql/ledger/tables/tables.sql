select
    t.pipeline, t.oid, t.schema, t.name, t.target, t.renamed_to, d.state, t.identity, t.columns,
    penstock.accepted(t.pipeline, t.oid, '', t.shape) as accepted, t.copy_id,
    t.complete_through, t.snapshot_id, t.paused_slug, t.paused_reason, d.paused_from_state,
    t.joined_lsn, t.joined_xid, t.left_lsn, t.discard, t.shows, t.lake_columns, t.remedy
from penstock.table as t
join penstock.table_due as d on d.pipeline = t.pipeline and d.oid = t.oid
where
    t.pipeline = %(name)s
    and (%(oid)s::oid is null or t.oid = %(oid)s)
    and (%(states)s::text[] is null or d.state = any(%(states)s))
    and t.oid <> all(%(but)s::oid[])
order by t.schema, t.name, t.oid
