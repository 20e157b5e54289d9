-- Where the next cut is to lie: at the first mark after the newest cut at which a window ends, else where the pipeline
-- stands. A mark inside a window can't be a cut any more and is passed over.
select coalesce(min(m.lsn), p.position), min(m.lsn) is not null
from penstock.pipeline as p
left join penstock.mark as m
    on
        m.pipeline = p.name and m.era = p.era and m.lsn <= p.position
        and not exists (
            select from penstock.cut as c where c.pipeline = p.name and c.era = p.era and c.lsn >= m.lsn
        )
        and (
            m.lsn = p.position
            or exists (
                select from penstock.window as w
                where w.pipeline = p.name and w.era = p.era and w.upto_lsn = m.lsn and w.state <> 'planned'
            )
        )
where p.name = %(name)s
group by p.position
