-- The latest time of the source by which all that was committed is in windows through a position; NULL where unknown.
select greatest(
    (
        select max(w.source_time)
        from penstock.window as w
        where
            w.pipeline = p.name and w.era = p.era and w.state <> 'planned' and w.caught_up and w.upto_lsn <= %(upto)s
    ),
    case when p.position <= %(upto)s then p.source_time end
)
from penstock.pipeline as p
where p.name = %(name)s
