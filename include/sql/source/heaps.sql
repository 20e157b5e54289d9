-- The wanted tables, and below each partitioned one its partitions down to the leaves, one row each.
-- key: the columns of the replica identity's index; under FULL those of the primary key. A deferrable primary key is
-- no replica identity, but identifies rows at each commit, which is all that FULL needs of it.
with recursive tree (root, oid) as (
  select w.oid, w.oid from unnest(%(oids)s::bigint[]) as w (oid)
  union all
  select tree.root, i.inhrelid::bigint
  from tree
  join pg_inherits i on i.inhparent = tree.oid
  join pg_class c on c.oid = i.inhrelid and c.relispartition
)
select
  tree.root,
  c.oid::bigint as oid,
  n.nspname::text as schema,
  c.relname::text as name,
  c.relkind::text as kind,
  c.relpersistence::text as persistence,
  c.relreplident::text as replica_identity,
  c.relfilenode::bigint as relfilenode,
  array(
    select i.inhparent::bigint from pg_inherits i where i.inhrelid = c.oid order by i.inhseqno
  ) as parents,
  array(
    select a.attname::text
    from pg_index x
    cross join unnest((x.indkey::int2[])[0:x.indnkeyatts - 1]) with ordinality as k (attnum, place)
    join pg_attribute a on a.attrelid = c.oid and a.attnum = k.attnum
    where x.indrelid = c.oid
      and x.indisvalid
      and case c.relreplident
        when 'd' then x.indisprimary and x.indimmediate
        when 'f' then x.indisprimary
        when 'i' then x.indisreplident
        else false
      end
    order by k.place
  ) as key,
  coalesce(m.amname = 'heap', false) as ranged,
  -- made by the transaction that made it a partition: a system column's row is written once, with the relation
  not exists (
    select from pg_inherits i
    join pg_attribute a on a.attrelid = i.inhrelid and a.attnum = -1
    where i.inhrelid = c.oid and i.xmin <> a.xmin
  ) as born_attached,
  case when %(sizes)s and c.relkind = 'r' then coalesce(pg_relation_size(c.oid), 0) else 0 end as bytes,
  current_setting('block_size')::int as block_size
from tree
join pg_class c on c.oid = tree.oid
join pg_namespace n on n.oid = c.relnamespace
left join pg_am m on m.oid = c.relam
order by tree.root, n.nspname, c.relname
