-- Everything in the users' schemas that a pattern may name, whether or not it can be published.
select
  c.oid::bigint as oid,
  n.nspname::text as schema,
  c.relname::text as name,
  c.relkind::text as kind,
  c.relpersistence::text as persistence,
  c.relispartition as is_partition,
  array(
    select i.inhparent::bigint from pg_inherits i where i.inhrelid = c.oid order by i.inhseqno
  ) as parents
from pg_class c
join pg_namespace n on n.oid = c.relnamespace
where c.relkind in ('r', 'p', 'v', 'm', 'f')
  and n.nspname !~ '^pg_'
  and n.nspname <> 'information_schema'
order by n.nspname, c.relname
