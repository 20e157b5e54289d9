-- The columns of one table whose type has a cast to text of its own. Such a cast differs from the type's output,
-- which is what decoding sends: true, not t, for a bool; no padding for a char(n); a netmask for an inet. Domains cast as
-- their base. text and varchar are their own text; a type without such a cast is cast by its output function anyway.
with recursive chain (attnum, name, type) as (
  select a.attnum, a.attname::text, a.atttypid
  from pg_attribute a
  join pg_class c on c.oid = a.attrelid
  join pg_namespace n on n.oid = c.relnamespace
  where n.nspname = {schema}
    and c.relname = {table}
    and a.attnum > 0
    and not a.attisdropped
  union all
  select chain.attnum, chain.name, t.typbasetype
  from chain
  join pg_type t on t.oid = chain.type
  where t.typbasetype <> 0
)
select distinct chain.name
from chain
join pg_cast k on k.castsource = chain.type and k.casttarget = 'text'::regtype
where chain.type not in ('text'::regtype, 'varchar'::regtype)
