-- `known_from`: all that committed since is in windows that the ledger still has. They begin where the oldest one does.
with oldest as (
    select p.name, coalesce(w.era, p.era) as era, coalesce(w.from_lsn, p.position) as lsn
    from penstock.pipeline as p
    left join lateral (
        select era, from_lsn
        from penstock.window
        where pipeline = p.name and state <> 'planned'
        order by era, from_lsn
        limit 1
    ) as w on true
    where p.name = %(name)s
)
select
    p.era, p.position, p.state,
    (
        select max(c.last_at)
        from penstock.source_clock as c
        where
            c.pipeline = p.name and c.era = p.era and c.lsn <= p.position
            and (not c.begins or c.last_at > c.first_at) -- a slot's own time was read after it was made
    ) as captured_through,
    known.first_at as known_from,
    coalesce(known.begins and known.lsn = oldest.lsn, false) as from_the_start,
    oldest.era as known_era
from penstock.pipeline as p
join oldest on oldest.name = p.name
left join lateral (
    select c.first_at, c.begins, c.lsn
    from penstock.source_clock as c
    where c.pipeline = p.name and c.era = oldest.era and c.lsn >= oldest.lsn
    order by c.lsn
    limit 1
) as known on true
where p.name = %(name)s
