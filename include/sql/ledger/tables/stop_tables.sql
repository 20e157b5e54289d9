-- A pause soon after the bell for the one before belongs to it: what a copy does not end must not be copied without bound.
update penstock.table as t
set
    paused_from_state = case t.state when 'paused' then t.paused_from_state else t.state end,
    paused_at = case
        when t.state = 'paused' or t.announced_at > clock_timestamp() - greatest('1 hour', 2 * least(t.announced_at - t.paused_at, '1 day'))
            then coalesce(t.paused_at, clock_timestamp())
        else clock_timestamp()
    end,
    state = 'paused', paused_slug = s.slug, paused_reason = s.reason, remedy = s.remedy, paused_by = penstock.by_task()
from jsonb_to_recordset(%(tables)s) as s (oid oid, slug text, reason text, remedy text)
where t.pipeline = %(name)s and t.oid = s.oid and t.state <> 'dropped'
returning t.oid
