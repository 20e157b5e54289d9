-- What the publication publishes: with publish_via_partition_root the roots, else the leaves. As pg_publication_tables says it,
-- but from the catalog's rows alone: the view's functions are as of now in every snapshot, and lock each table.
-- columns: the publication's list, else all that it sends. filter: a digest of the stored expression, which is no SQL.
-- by way of jsonb, because column lists and row filters came with version 15, generated columns with 18, exceptions with 19
-- membership: the catalog rows that make the table a member, with their versions: other ones after it left and came back, or
-- its filter or columns changed, also where that was undone. Schemas by way of pg_depend, because their catalog, 6237, came
-- with version 15; with the row that puts the table into its schema, which ALTER TABLE SET SCHEMA rewrites.
with recursive publication as materialized (
  select
    p.oid,
    p.puballtables as all_tables,
    p.pubviaroot as via_root,
    coalesce(to_jsonb(p) ->> 'pubgencols' = 's', false) as generated
  from pg_publication p
  where p.pubname = %(publication)s
),
listed as materialized (
  select
    r.prrelid as oid,
    'table ' || r.oid || ':' || r.xmin::text as version,
    to_jsonb(r) -> 'prattrs' as columns,
    to_jsonb(r) ->> 'prqual' as filter,
    coalesce(to_jsonb(r) ->> 'prexcept' = 'true', false) as excepted
  from pg_publication_rel r
  join publication p on p.oid = r.prpubid
),
schema as materialized (
  select d.refobjid as oid, 'schema ' || d.objid || ':' || d.xmin::text as version
  from pg_depend d
  join pg_depend o on o.classid = d.classid and o.objid = d.objid and o.refclassid = 'pg_publication'::regclass
  join publication p on p.oid = o.refobjid
  where d.classid = 6237 and d.refclassid = 'pg_namespace'::regclass
),
-- from 16384 on: what initdb made, the information schema's tables too, is never published
named (oid) as materialized (
  select l.oid from listed l where not l.excepted
  union
  select c.oid
  from pg_class c
  cross join publication p
  where c.relkind in ('r', 'p')
    and c.relpersistence = 'p'
    and c.oid >= 16384
    and (
      c.relnamespace in (select s.oid from schema s)
      or (p.all_tables and case when p.via_root then not c.relispartition else c.relkind = 'r' end)
    )
),
-- without publish_via_partition_root all partitions, foreign and unlogged ones too; not one that is being detached concurrently
tree (oid) as (
  select n.oid from named n
  union
  select i.inhrelid
  from tree
  cross join publication p
  join pg_class c on c.oid = tree.oid and c.relkind = 'p'
  join pg_inherits i on i.inhparent = c.oid and not i.inhdetachpending
  where not p.via_root
),
-- each of them, and the partitioned tables above it
family (member, oid) as (
  select tree.oid, tree.oid from tree
  union
  select family.member, i.inhparent
  from family
  join pg_class c on c.oid = family.oid and c.relispartition
  join pg_inherits i on i.inhrelid = c.oid and not i.inhdetachpending
)
select
  c.oid::bigint,
  array(
    select a.attname::text
    from pg_attribute a
    where a.attrelid = c.oid
      and a.attnum > 0
      and not a.attisdropped
      and case
        when jsonb_typeof(own.columns) = 'array' then own.columns @> to_jsonb(a.attnum)
        else a.attgenerated = '' or (a.attgenerated = 's' and p.generated)
      end
    order by a.attnum
  ),
  md5(own.filter),
  array(
    select l.version
    from family f
    join listed l on l.oid = f.oid
    where f.member = c.oid
    union all
    select s.version || ' since ' || i.xmin::text
    from schema s
    join pg_depend i on i.classid = 'pg_class'::regclass and i.objid = c.oid and i.objsubid = 0
      and i.refclassid = 'pg_namespace'::regclass and i.refobjid = s.oid
    where s.oid = c.relnamespace
    union all
    select 'all tables' where p.all_tables
    order by 1
  ),
  exists (select from listed l where l.oid = c.oid)
from tree
cross join publication p
join pg_class c on c.oid = tree.oid
-- filters and lists count only where the table's membership is its own
left join listed own on own.oid = c.oid and not p.all_tables and c.relnamespace not in (select s.oid from schema s)
where (p.via_root or c.relkind <> 'p')
  and not exists (
    select from family f
    join named n on n.oid = f.oid
    where f.member = c.oid
      and f.oid <> c.oid
      and p.via_root
  )
  and not exists (select from family f join listed l on l.oid = f.oid and l.excepted where f.member = c.oid)
