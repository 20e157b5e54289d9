-- The value that rows written before a column existed show, as its type's own text: not the present default.
-- array_to_string on the one-element array is the only way to that text; it neither quotes nor parses.
select
  a.attrelid::bigint,
  a.attname::text,
  array_to_string(a.attmissingval, '')
from pg_attribute a
where a.attrelid = any (%(oids)s::bigint[]::oid[])
  and a.attnum > 0
  and a.atthasmissing
  and not a.attisdropped
