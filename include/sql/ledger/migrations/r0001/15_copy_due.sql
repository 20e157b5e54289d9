-- After which position a copy needs windows to become its table: the first one with a change that its snapshot may not
-- have seen, wherever that lies. A replay begins here, so whoever lets a later window go lets the copy go too.
create view penstock.copy_due as
select
    c.pipeline, c.id, c.oid,
    coalesce(
        (
            select min(w.from_lsn)
            from penstock.window as w
            where
                w.pipeline = c.pipeline and w.era = p.era
                and w.max_xid >= split_part(c.snapshot, ':', 1)::bigint
        ),
        p.position
    ) as after
from penstock.copy as c
join penstock.pipeline as p on p.name = c.pipeline
