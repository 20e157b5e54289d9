-- No replay may begin with a copy from before changes that are in no window, and a table that is gone needs none that was not loaded.
-- What is being built from one continues.
update penstock.load as l
set
    files = null,
    state = case when l.cause = 'first' and l.state <> 'done' then 'given_up' else l.state end,
    finished_at = case when l.cause = 'first' then coalesce(l.finished_at, clock_timestamp()) else l.finished_at end
from penstock.table as t
where
    l.pipeline = %(name)s and l.oid = any(%(oids)s::oid[]) and l.cause in ('first', 'resync')
    and t.pipeline = l.pipeline and t.oid = l.oid
    and case when %(loaded)s then l.state = 'done' else l.state <> 'done' and t.state = 'dropped' end
    and not exists (
        select from penstock.load as b
        where
            b.pipeline = l.pipeline and b.copy_id = l.copy_id and b.oid = l.oid
            and b.cause in ('resync', 'replay', 'shadow') and b.state in ('copying', 'building', 'ready')
    )
