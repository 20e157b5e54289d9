-- Tables of which the stream lacks changes: paused, whatever they were, until a copy that sees all who wrote meanwhile.
-- What waits for its first copy waits on, for one that sees them.
update penstock.table as t
set
    paused_reason = case
        when t.state = 'new' then null
        when t.state = 'paused' and t.paused_slug <> %(slug)s
            then %(reason)s || '; before that it was paused by ' || t.paused_slug || ': ' || t.paused_reason
        else %(reason)s
    end,
    paused_slug = case when t.state <> 'new' then %(slug)s end,
    paused_by = case when t.state <> 'new' then penstock.by_task() end,
    paused_from_state = case t.state when 'new' then null when 'paused' then t.paused_from_state else t.state end,
    paused_at = case
        when t.state = 'new' then null
        when t.state = 'paused' or t.announced_at > clock_timestamp() - greatest('1 hour', 2 * least(t.announced_at - t.paused_at, '1 day'))
            then coalesce(t.paused_at, clock_timestamp())
        else clock_timestamp()
    end,
    announced_at = case when t.state <> 'new' then t.announced_at end,
    state = case t.state when 'new' then 'new' else 'paused' end, joined_lsn = %(lsn)s, joined_xid = %(xid)s,
    accepted = case
        when h.membership is null then t.accepted
        else jsonb_set(t.accepted, '{shape,membership}', h.membership)
    end
from jsonb_to_recordset(%(tables)s) as h (oid oid, membership jsonb)
where t.pipeline = %(name)s and t.oid = h.oid and t.state <> 'dropped' and t.left_lsn is null
