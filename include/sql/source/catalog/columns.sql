select
  a.attrelid::bigint as relation,
  a.attnum::int as attnum,
  a.attname::text as name,
  a.atttypid::bigint as type,
  a.atttypmod as typmod,
  a.attnotnull as not_null,
  a.attgenerated::text as generated,
  a.attidentity::text as identity,
  greatest(a.attndims, t.typndims)::int as dimensions,
  a.xmin::text as version
from pg_attribute a
join pg_type t on t.oid = a.atttypid
where a.attrelid = any (%(oids)s::bigint[]::oid[])
  and a.attnum > 0
  and not a.attisdropped
order by a.attrelid, a.attnum
