insert into penstock.skipped (pipeline, era, lsn, xid, oids, known_lsn)
select name, era, %(lsn)s, %(xid)s, %(oids)s::bigint[], %(known_lsn)s from penstock.pipeline where name = %(name)s
