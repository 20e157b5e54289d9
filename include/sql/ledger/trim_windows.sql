delete from penstock.window
where pipeline = %(name)s and state = 'confirmed' and from_lsn = any(%(from_lsns)s::pg_lsn[])
