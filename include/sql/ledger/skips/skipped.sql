select s.lsn, s.xid, s.oids, s.known_lsn, s.at
from penstock.skipped as s
join penstock.pipeline as p on p.name = s.pipeline and p.era = s.era
where s.pipeline = %(name)s
order by s.lsn
