-- Which of these relations have indexes or statistics on expressions, which every query over them evaluates while it is
-- planned, and the functions of users in them.
with wanted as (
  select w.schema, w.name, c.oid
  from unnest(%(schemas)s::text[], %(names)s::text[]) as w (schema, name)
  join pg_namespace n on n.nspname = w.schema
  join pg_class c on c.relnamespace = n.oid and c.relname = w.name
),
evaluated as (
  select w.schema, w.name, 'pg_class'::regclass as class, i.indexrelid as object
  from wanted w
  join pg_index i on i.indrelid = w.oid
  where i.indexprs is not null or i.indpred is not null
  union all
  select w.schema, w.name, 'pg_statistic_ext'::regclass, s.oid
  from wanted w
  join pg_statistic_ext s on s.stxrelid = w.oid
  where s.stxexprs is not null
)
select
  e.schema,
  e.name,
  coalesce(array_agg(distinct p.oid::regprocedure::text) filter (where p.oid is not null), '{}') as functions
from evaluated e
left join pg_depend d on d.classid = e.class and d.objid = e.object and d.refclassid = 'pg_proc'::regclass
left join pg_proc p on p.oid = d.refobjid
group by e.schema, e.name
