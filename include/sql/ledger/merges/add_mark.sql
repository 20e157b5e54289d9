-- Nothing is inserted where the pipeline has gone past this place already, or a window that is under way will.
insert into penstock.mark (pipeline, era, lsn, reason)
select p.name, p.era, %(lsn)s, %(reason)s
from penstock.pipeline as p
where
    p.name = %(name)s and p.position <= %(lsn)s
    and not exists (
        select from penstock.window as w
        where w.pipeline = p.name and w.era = p.era and w.state = 'planned' and w.upto_lsn > %(lsn)s
    )
on conflict (pipeline, era, lsn) do update set reason = excluded.reason
