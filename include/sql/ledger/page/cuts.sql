-- What a cut holds is long; only how many tables it moved is counted, and when its merge began is in its attempt.
-- `oldest_commit` is the earliest commit among the changes that came with a cut: those after the cut before it in its era.
select
    c.lsn, c.attempt, c.rows as changes, jsonb_array_length(c.tables) as tables, c.published_at, w.source_time,
    held.oldest_commit, c.by_task
from (
    select number, pipeline, era, lsn, attempt, rows, tables, published_at, by_task
    from penstock.cut
    where pipeline = %(name)s
    order by number desc
    limit %(limit)s
) as c
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
