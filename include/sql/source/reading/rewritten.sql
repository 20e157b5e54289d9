-- Which of these relations are not, or not in the same file, what this transaction's snapshot shows of the catalog.
select w.schema, w.name
from unnest({schemas}::text[], {names}::text[]) as w (schema, name)
left join (pg_class as c join pg_namespace as n on n.oid = c.relnamespace)
  on n.nspname = w.schema and c.relname = w.name
where c.oid is null
  or to_regclass(format('%I.%I', w.schema, w.name))::oid is distinct from c.oid
  or pg_relation_filenode(c.oid) is distinct from c.relfilenode
