-- What the clock said before the oldest window is of no use any more, but the last of it: it says as of when that window begins.
with oldest as (
    select coalesce(w.era, p.era) as era, coalesce(w.from_lsn, p.position) as lsn
    from penstock.pipeline as p
    left join lateral (
        select era, from_lsn from penstock.window where pipeline = p.name order by era, from_lsn limit 1
    ) as w on true
    where p.name = %(name)s
)
delete from penstock.source_clock as c
using oldest
where
    c.pipeline = %(name)s
    and exists (
        select from penstock.source_clock as newer
        where newer.pipeline = c.pipeline
            and (newer.era, newer.lsn) > (c.era, c.lsn) and (newer.era, newer.lsn) <= (oldest.era, oldest.lsn)
    )
