-- Those that a cut has reached or left behind, and those of older eras.
delete from penstock.mark as m
using penstock.pipeline as p
where p.name = m.pipeline and m.pipeline = %(name)s and (m.era < p.era or m.lsn <= %(lsn)s)
