-- Whether a window ends, or can still end, exactly here.
select
    p.position <= %(lsn)s
    or exists (
        select from penstock.window as w
        where w.pipeline = p.name and w.era = p.era and w.upto_lsn = %(lsn)s and w.state <> 'planned'
    )
from penstock.pipeline as p
where p.name = %(name)s
