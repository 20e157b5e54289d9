insert into penstock.column_fetch (pipeline, id, oid, lsn, attnums, whole, stays, leaves)
values (%(name)s, %(id)s, %(oid)s, %(lsn)s, %(attnums)s, %(whole)s, %(stays)s, %(leaves)s)
