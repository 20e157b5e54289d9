-- What the publication publishes: with publish_via_partition_root the roots, else the leaves.
-- by way of jsonb, because column lists and row filters came with version 15
select
  c.oid::bigint,
  to_jsonb(t) -> 'attnames',
  to_jsonb(t) ->> 'rowfilter'
from pg_publication_tables t
join pg_namespace n on n.nspname = t.schemaname
join pg_class c on c.relnamespace = n.oid and c.relname = t.tablename
where t.pubname = %(publication)s
