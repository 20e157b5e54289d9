-- The server's own text of the filter that a publication has for a table. It takes a lock of the table for a moment. Not for
-- version 14, which has no filters.
select pg_get_expr(r.prqual, r.prrelid)
from pg_publication_rel r
join pg_publication p on p.oid = r.prpubid
where p.pubname = %(publication)s
  and r.prrelid = %(oid)s
