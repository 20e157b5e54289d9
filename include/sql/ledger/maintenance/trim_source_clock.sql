-- What the clock said before the oldest window is of no use any more; what it said last at or before the position is.
with oldest as (
    select coalesce(w.era, p.era) as era, coalesce(w.from_lsn, p.position) as lsn
    from penstock.pipeline as p
    left join lateral (
        select era, from_lsn from penstock.window where pipeline = p.name order by era, from_lsn limit 1
    ) as w on true
    where p.name = %(name)s
)
delete from penstock.source_clock as c
using oldest, penstock.pipeline as p
where
    c.pipeline = %(name)s and p.name = c.pipeline
    and (c.era, c.lsn) < (oldest.era, oldest.lsn)
    and exists (
        select from penstock.source_clock as newer
        where newer.pipeline = c.pipeline and newer.era = p.era and newer.lsn <= p.position
            and (newer.era, newer.lsn) > (c.era, c.lsn)
    )
