-- Tables that wait for a copy and were not announced lately. An announcement that led to no copy is repeated.
-- For a paused table each wait is as long as all before it together, a day at most: its copy may fail each time.
update penstock.table as t
set announced_at = clock_timestamp()
from penstock.pipeline as p
where
    p.name = %(name)s and p.state = 'running' and t.pipeline = p.name and t.left_lsn is null
    and case t.state
        when 'new' then %(joined)s and t.joined_lsn is not null
        when 'paused' then %(paused)s and t.remedy in ('read', 'copy')
        else false
    end
    and (
        t.announced_at is null
        or t.announced_at <= clock_timestamp() - greatest(
            %(every)s::interval, case t.state when 'paused' then least(t.announced_at - t.paused_at, '1 day') end
        )
    )
returning t.oid
