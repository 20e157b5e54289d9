-- A loaded copy is of use while it is its table's newest and no window since its snapshot is gone; an older one for a
-- while. A copy that is not loaded is of use to its table, or to what is being built. `max_xid` is that of the windows just
-- forgotten. What a replay has of a copy's files, and all of an era that has ended, is of no use once it is built or given up.
with
    ended as (
        update penstock.load as l
        set files = null
        from penstock.pipeline as p
        where
            l.pipeline = %(name)s and p.name = l.pipeline and l.files is not null and l.finished_at is not null
            and (l.cause in ('replay', 'shadow') or l.era <> p.era)
    )
update penstock.load as l
set
    files = null,
    state = case when l.cause = 'first' and l.state <> 'done' then 'given_up' else l.state end,
    finished_at = case when l.cause = 'first' then coalesce(l.finished_at, clock_timestamp()) else l.finished_at end
from penstock.table as t, penstock.pipeline as p
where
    l.pipeline = %(name)s and t.pipeline = l.pipeline and t.oid = l.oid and p.name = l.pipeline and l.era = p.era
    and l.cause in ('first', 'resync') and l.files is not null
    and not exists (
        select from penstock.load as b
        where
            b.pipeline = l.pipeline and b.copy_id = l.copy_id and b.oid = l.oid
            and b.cause in ('resync', 'replay', 'shadow') and b.state in ('copying', 'building', 'ready')
    )
    and case
        when l.state = 'done' then
            split_part(l.snapshot, ':', 1)::bigint <= %(max_xid)s
            or t.state = 'dropped'
            or (l.copy_id is distinct from t.copy_id and l.copied_at < %(before)s)
        else l.copy_id is distinct from t.copy_id and l.copy_started_at < %(before)s
    end
returning l.copy_id, l.oid, l.bytes
