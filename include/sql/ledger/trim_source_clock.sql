-- What the clock said of positions before the oldest window is needed no more.
delete from penstock.source_clock as c
using (
    select era, from_lsn
    from penstock.window
    where pipeline = %(name)s and state <> 'planned'
    order by era, from_lsn
    limit 1
) as oldest
where c.pipeline = %(name)s and (c.era, c.lsn) < (oldest.era, oldest.from_lsn)
