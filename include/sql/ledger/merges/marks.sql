select m.lsn, m.reason
from penstock.mark as m
join penstock.pipeline as p on p.name = m.pipeline and p.era = m.era
where m.pipeline = %(name)s
order by m.lsn
