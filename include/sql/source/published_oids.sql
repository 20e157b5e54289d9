-- Which tables a publication publishes, and whether each is listed by itself, not by its schema, a root or FOR ALL TABLES.
select
  c.oid::bigint,
  exists (select from pg_publication_rel r where r.prpubid = p.oid and r.prrelid = c.oid)
from pg_publication_tables t
join pg_publication p on p.pubname = t.pubname
join pg_namespace n on n.nspname = t.schemaname
join pg_class c on c.relnamespace = n.oid and c.relname = t.tablename
where t.pubname = %(publication)s
