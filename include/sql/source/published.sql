-- What the publication publishes: with publish_via_partition_root the roots, else the leaves.
-- by way of jsonb, because column lists and row filters came with version 15
-- membership: the catalog rows that make the table a member, with their versions: other ones after it left and came back, or
-- its filter or columns changed, also where that was undone. Schemas by way of pg_depend, because their catalog, 6237, came
-- with version 15; with the row that puts the table into its schema, which ALTER TABLE SET SCHEMA rewrites.
select
  c.oid::bigint,
  to_jsonb(t) -> 'attnames',
  to_jsonb(t) ->> 'rowfilter',
  array(
    select 'table ' || r.oid || ':' || r.xmin::text
    from pg_publication_rel r
    where r.prpubid = p.oid
      and (r.prrelid = c.oid or r.prrelid in (select relid from pg_partition_ancestors(c.oid)))
    union all
    select 'schema ' || d.objid || ':' || d.xmin::text || ' since ' || i.xmin::text
    from pg_depend d
    join pg_depend i on i.classid = 'pg_class'::regclass and i.objid = c.oid and i.objsubid = 0
      and i.refclassid = 'pg_namespace'::regclass and i.refobjid = n.oid
    where d.classid = 6237 and d.refclassid = 'pg_namespace'::regclass and d.refobjid = n.oid
      and exists (
        select from pg_depend o
        where o.classid = d.classid and o.objid = d.objid
          and o.refclassid = 'pg_publication'::regclass and o.refobjid = p.oid
      )
    union all
    select 'all tables' where p.puballtables
    order by 1
  )
from pg_publication_tables t
join pg_publication p on p.pubname = t.pubname
join pg_namespace n on n.nspname = t.schemaname
join pg_class c on c.relnamespace = n.oid and c.relname = t.tablename
where t.pubname = %(publication)s
