-- Of some tables, or of all.
delete from penstock.table_state
where pipeline = %(name)s and (%(oids)s::bigint[] is null or oid = any(%(oids)s::bigint[]::oid[]))
