-- The wanted types and all that they are made of. parts: base of a domain, element of an array, attributes of a composite,
-- subtype of a range. An array is a type whose element names it as its array: int2vector and point also have elements.
-- names_objects: its text depends on more than the value, by what its output function says of itself. Of money, dates and
-- times that is our session's settings, and of what is made of other types, the text of these.
with recursive needed (oid) as (
  select w.oid::oid from unnest(%(oids)s::bigint[]) as w (oid)
  union
  select part.oid
  from needed
  join pg_type t on t.oid = needed.oid
  cross join lateral (
    select t.typbasetype
    union all
    select e.oid from pg_type e where e.oid = t.typelem and e.typarray = t.oid
    union all
    select a.atttypid
    from pg_attribute a
    where t.typtype = 'c' and a.attrelid = t.typrelid and a.attnum > 0 and not a.attisdropped
    union all
    select r.rngsubtype from pg_range r where t.typtype in ('r', 'm') and t.oid in (r.rngtypid, r.rngmultitypid)
  ) as part (oid)
  where part.oid <> 0
)
select
  t.oid::bigint as oid,
  n.nspname::text as schema,
  t.typname::text as name,
  t.typtype::text as kind,
  nullif(t.typbasetype, 0)::bigint as base,
  t.typtypmod as base_typmod,
  e.oid::bigint as element,
  t.typtype = 'b'
  and e.oid is null
  and t.oid not in (
    'money'::regtype, 'date'::regtype, 'timestamp'::regtype, 'timestamptz'::regtype, 'interval'::regtype
  )
  and (select p.provolatile <> 'i' from pg_proc p where p.oid = t.typoutput) as names_objects,
  (select r.rngsubtype::bigint from pg_range r where t.typtype in ('r', 'm') and t.oid in (r.rngtypid, r.rngmultitypid))
    as subtype,
  array(select l.enumlabel::text from pg_enum l where l.enumtypid = t.oid order by l.enumsortorder) as labels,
  array(
    select jsonb_build_array(a.attname, a.atttypid::bigint, a.atttypmod)
    from pg_attribute a
    where t.typtype = 'c' and a.attrelid = t.typrelid and a.attnum > 0 and not a.attisdropped
    order by a.attnum
  ) as attributes,
  -- the versions of these rows: other ones after a label or an attribute was changed, also where it was changed back
  array(
    select format('%%s %%s', l.oid, l.xmin) from pg_enum l where l.enumtypid = t.oid order by l.enumsortorder
  )
  || array(
    select format('%%s %%s', a.attnum, a.xmin)
    from pg_attribute a
    where t.typtype = 'c' and a.attrelid = t.typrelid and a.attnum > 0
    order by a.attnum
  ) as versions
from needed
join pg_type t on t.oid = needed.oid
join pg_namespace n on n.oid = t.typnamespace
left join pg_type e on e.oid = t.typelem and e.typarray = t.oid
