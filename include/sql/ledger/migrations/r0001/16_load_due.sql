-- After which position a table that is being built still needs windows.
create view penstock.load_due as
select
    l.pipeline, l.id, l.oid,
    coalesce(l.through_lsn, penstock.needed_after(l.pipeline, l.snapshot)) as after
from penstock.load as l
join penstock.pipeline as p on p.name = l.pipeline and p.era = l.era
where l.cause in ('resync', 'replay', 'shadow') and l.state in ('copying', 'building', 'ready')
