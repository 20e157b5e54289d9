delete from penstock.mark as m
using penstock.pipeline as p
where p.name = m.pipeline and m.pipeline = %(name)s and m.era = p.era and m.lsn = %(lsn)s
