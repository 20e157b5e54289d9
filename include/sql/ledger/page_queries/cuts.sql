-- What a cut holds is long; only how many tables it moved is counted, and when its merge began is in its attempt.
select
    c.lsn, c.attempt, c.rows as changes, jsonb_array_length(c.tables) as tables, c.published_at, w.source_time
from (
    select number, pipeline, era, lsn, attempt, rows, tables, published_at
    from penstock.cut
    where pipeline = %(name)s
    order by number desc
    limit %(limit)s
) as c
left join penstock.window as w on w.pipeline = c.pipeline and w.era = c.era and w.upto_lsn = c.lsn and w.state <> 'planned'
order by c.number desc
