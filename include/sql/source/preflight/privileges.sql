-- What the role of this session may do with each relation, and how the relation is used.
select
  c.oid::bigint as oid,
  n.nspname::text as schema,
  c.relname::text as name,
  has_schema_privilege(n.oid, 'usage') as usage,
  has_table_privilege(c.oid, 'select') as select,
  row_security_active(c.oid) as narrowed,
  pg_has_role(c.relowner, 'usage') as owned
from pg_class c
join pg_namespace n on n.oid = c.relnamespace
where c.oid = any (%(oids)s::bigint[]::oid[])
order by n.nspname, c.relname
