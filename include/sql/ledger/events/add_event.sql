insert into penstock.event (pipeline, slug, level, table_oid, message, details)
values (%(name)s, %(slug)s, %(level)s, %(table_oid)s, %(message)s, %(details)s)
