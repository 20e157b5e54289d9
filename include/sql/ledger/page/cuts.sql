-- What a cut holds is long; only how many tables it moved is counted, and when its merge began is in its attempt's name.
-- `seconds` is from planning the merge to publishing the cut, `delay_seconds` its age when it was published, `oldest_seconds` how long the
-- change that waited longest took from its commit at the source to this cut; null where that is not known, as for a cut that ends with no window.
-- `oldest_commit` is the earliest commit among the changes that came with a cut: those after the cut before it in its era.
select
    c.lsn, c.published_at, c.rows as changes, jsonb_array_length(c.tables) as tables, took.seconds,
    nullif(c.rows, 0) / nullif(took.seconds, 0) as changes_per_second,
    case when w.source_time is not null then
        extract(epoch from greatest(c.published_at - w.source_time, '0'))::float8
    end as delay_seconds,
    case when held.oldest_commit is not null then
        extract(epoch from greatest(c.published_at - held.oldest_commit, '0'))::float8
    end as oldest_seconds,
    c.by_task as task
from (
    select number, pipeline, era, lsn, attempt, rows, tables, published_at, by_task
    from penstock.cut
    where pipeline = %(name)s
    order by number desc
    limit %(limit)s
) as c
cross join lateral (
    select
        case when c.attempt ~ '^\d{8}t\d{9}_' then
            extract(epoch from greatest(c.published_at - to_timestamp(left(c.attempt, 18), 'YYYYMMDD"t"HH24MISSMS'), '0'))::float8
        end as seconds
) as took
left join penstock.window as w on w.pipeline = c.pipeline and w.era = c.era and w.upto_lsn = c.lsn and w.state <> 'planned'
left join lateral (
    select b.lsn
    from penstock.cut as b
    where b.pipeline = c.pipeline and b.era = c.era and b.number < c.number
    order by b.number desc
    limit 1
) as before on true
left join lateral (
    select min(lower(v.committed)) as oldest_commit
    from penstock.window as v
    where
        v.pipeline = c.pipeline and v.era = c.era and v.state <> 'planned' and v.rows > 0
        and v.upto_lsn > before.lsn and v.upto_lsn <= c.lsn
) as held on true
order by c.number desc
