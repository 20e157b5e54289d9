-- Which relations refuse the application's updates or deletes, or would, because the publication publishes them: the rule of
-- the server's CheckCmdReplicaIdentity, from the catalog's rows alone. EXPLAIN UPDATE would ask the server itself, and run
-- functions of the table's owner with this session's rights while it plans.
-- joining: tables as if they were listed; where there is no publication, as if bootstrap had made it with the kinds in publish.
-- by way of jsonb, because column lists and row filters came with version 15, generated columns with 18.
with recursive publication as materialized (
  select
    p.oid,
    p.puballtables as all_tables,
    p.pubviaroot as via_root,
    p.pubupdate or p.pubdelete as asks,
    coalesce(to_jsonb(p) ->> 'pubgencols' = 's', false) as generated
  from pg_publication p
  where p.pubname = %(publication)s
  union all
  select null, false, true, %(publish)s::text[] && array['update', 'delete'], false
  where not exists (select from pg_publication p where p.pubname = %(publication)s)
),
listed as materialized (
  select r.prrelid as oid, to_jsonb(r) -> 'prattrs' as columns, to_jsonb(r) ->> 'prqual' as filter
  from pg_publication_rel r
  join publication p on p.oid = r.prpubid
  union all
  select j.oid::oid, null, null
  from unnest(%(joining)s::bigint[]) as j (oid)
  where not exists (
    select from pg_publication_rel r join publication p on p.oid = r.prpubid where r.prrelid = j.oid::oid
  )
),
-- its catalog, 6237, came with version 15
schema as materialized (
  select d.refobjid as oid
  from pg_depend d
  join pg_depend o on o.classid = d.classid and o.objid = d.objid and o.refclassid = 'pg_publication'::regclass
  join publication p on p.oid = o.refobjid
  where d.classid = 6237 and d.refclassid = 'pg_namespace'::regclass
),
named (oid) as materialized (
  select l.oid from listed l
  union
  select c.oid
  from pg_class c
  cross join publication p
  where c.relkind in ('r', 'p') and (p.all_tables or c.relnamespace in (select s.oid from schema s))
),
tree (oid) as (
  select n.oid from named n
  union
  select i.inhrelid
  from tree
  join pg_class c on c.oid = tree.oid and c.relkind = 'p'
  join pg_inherits i on i.inhparent = c.oid and not i.inhdetachpending
),
-- only relations with rows of their own, in the WAL, and made after initdb are asked for an identity
heap as materialized (
  select c.oid, c.relnamespace, c.relname, c.relreplident, c.relispartition
  from tree
  join pg_class c on c.oid = tree.oid
  where c.relkind = 'r' and c.relpersistence = 'p' and c.oid >= 16384
),
family (member, oid, above) as (
  select h.oid, h.oid, 0 from heap h
  union all
  select f.member, i.inhparent, f.above + 1
  from family f
  join pg_class c on c.oid = f.oid and c.relispartition
  join pg_inherits i on i.inhrelid = c.oid and not i.inhdetachpending
),
-- list and filter are those of the topmost partitioned table that is published, where changes come under its name
top as materialized (
  select distinct on (f.member) f.member, f.oid
  from family f
  join pg_class c on c.oid = f.oid
  cross join publication p
  where f.above > 0
    and p.via_root
    and (f.oid in (select l.oid from listed l) or c.relnamespace in (select s.oid from schema s))
  order by f.member, f.above desc
),
-- the table that is published for it
whole as materialized (
  select distinct on (f.member) f.member, f.oid
  from family f
  cross join publication p
  where f.oid in (select n.oid from named n) and (p.via_root or f.above = 0)
  order by f.member, f.above desc
),
published as materialized (
  select h.*, coalesce(top.oid, h.oid) as shown_as, coalesce(whole.oid, h.oid) as table_oid
  from heap h
  left join top on top.member = h.oid
  left join whole on whole.member = h.oid
),
looked as materialized (
  select
    t.*,
    case when jsonb_typeof(l.columns) = 'array' then l.columns end as columns,
    l.filter,
    identity.columns as key,
    exists (
      select from pg_index x
      where x.indrelid = t.oid
        and x.indisprimary
        and x.indisvalid
        and x.indimmediate
        and not exists (
          select from pg_attribute a
          where a.attrelid = t.oid and a.attnum = any (x.indkey::int2[]) and a.attgenerated <> ''
        )
    ) as keyed,
    exists (
      select from pg_index x where x.indrelid = t.oid and x.indisprimary and not x.indimmediate
    ) as waits,
    array(
      select a.attname::text
      from pg_attribute a
      where a.attrelid = t.oid
        and a.attnum > 0
        and not a.attisdropped
        and (a.attgenerated = 'v' or (a.attgenerated = 's' and not p.generated))
      order by a.attnum
    ) as unsent
  from published t
  cross join publication p
  left join listed l on l.oid = t.shown_as and not p.all_tables
  left join lateral (
    select
      array(
        select a.attname::text
        from unnest((x.indkey::int2[])[0:x.indnkeyatts - 1]) with ordinality as k (attnum, place)
        join pg_attribute a on a.attrelid = x.indrelid and a.attnum = k.attnum
        order by k.place
      ) as columns
    from pg_index x
    where x.indrelid = t.oid
      and x.indisvalid
      and x.indisunique
      and x.indimmediate
      and x.indpred is null
      and case t.relreplident when 'd' then x.indisprimary when 'i' then x.indisreplident else false end
  ) as identity on true
  where p.asks
),
-- names, because a partition's columns may have other numbers
narrowed as materialized (
  select
    t.*,
    array(
      select distinct a.attname::text
      from regexp_matches(t.filter, ':varattno (\d+)', 'g') as v (numbers)
      join pg_attribute a on a.attrelid = t.shown_as and a.attnum = v.numbers[1]::int
      where a.attname::text <> all (coalesce(t.key, '{}'))
      order by 1
    ) as filtered,
    array(
      select k.name
      from unnest(t.key) with ordinality as k (name, place)
      join pg_attribute a on a.attrelid = t.shown_as and a.attname::text = k.name
      where not t.columns @> to_jsonb(a.attnum)
      order by k.place
    ) as unlisted,
    array(select u.name from unnest(t.unsent) as u (name) where u.name = any (t.key)) as unsent_key
  from looked t
),
found as (
  select
    n.*,
    case
      when n.relreplident = 'f' and n.columns is not null then 'list'
      when n.relreplident = 'f' and v.is_18 and n.unsent <> '{}' then 'generated'
      when n.relreplident = 'f' then null
      when n.filtered <> '{}' then 'filter'
      when n.unlisted <> '{}' then 'unlisted'
      when v.is_18 and n.columns is null and n.unsent_key <> '{}' then 'generated key'
      when n.key is null then case when n.relreplident = 'd' and n.waits then 'deferrable' else 'none' end
    end as fault,
    n.columns is null and not (v.is_18 and n.unsent <> '{}') as full_rows
  from narrowed n
  cross join (select current_setting('server_version_num')::int >= 180000) as v (is_18)
)
select
  f.oid::bigint as oid,
  s.nspname::text as schema,
  f.relname::text as name,
  f.table_oid::bigint as table_oid,
  whole_schema.nspname::text as table_schema,
  whole.relname::text as table_name,
  f.fault,
  case f.fault
    when 'filter' then f.filtered
    when 'unlisted' then f.unlisted
    when 'generated key' then f.unsent_key
    when 'generated' then f.unsent
    else '{}'
  end as columns,
  f.keyed,
  f.full_rows
from found f
join pg_namespace s on s.oid = f.relnamespace
join pg_class whole on whole.oid = f.table_oid
join pg_namespace whole_schema on whole_schema.oid = whole.relnamespace
where f.fault is not null
order by s.nspname, f.relname
