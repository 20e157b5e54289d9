delete from penstock.window as w
using unnest(%(eras)s::integer[], %(from_lsns)s::pg_lsn[]) as old (era, from_lsn)
where w.pipeline = %(name)s and w.era = old.era and w.from_lsn = old.from_lsn
