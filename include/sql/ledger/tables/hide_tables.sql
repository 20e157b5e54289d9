-- Tables of which the stream lacks changes, stopped but for those that wait for their first copy: a copy has to see all who wrote
-- meanwhile.
update penstock.table as t
set
    joined_lsn = %(lsn)s, joined_xid = %(xid)s,
    announced_at = case when t.state <> 'new' then t.announced_at end, paused_at = case when t.state <> 'new' then t.paused_at end,
    shape = case when h.membership is null then t.shape else jsonb_set(t.shape, '{membership}', h.membership) end
from jsonb_to_recordset(%(tables)s) as h (oid oid, membership jsonb)
where t.pipeline = %(name)s and t.oid = h.oid and t.state <> 'dropped' and t.left_lsn is null
