-- The wanted tables, and below each partitioned one its partitions down to the leaves, one row each.
-- bounds: of each step of the chain the strategy, the key and the bounds, null where the key is not one plain column.
-- key: the columns of the replica identity's index; under FULL those of the primary key. None where that is deferrable, also in
-- one partition only (late_key): then two rows may have one key until the statement or the transaction ends. key_index: that index,
-- 0 for none. identity: the replica identity, n where its index does not exist or is deferrable.
-- late: the deferrable indexes of these relations, and those of partitioned tables that they are parts of.
-- chain: the versions of the pg_inherits rows between the table and the partition; a partition that was detached and
-- attached again has another one.
-- attached: version in the chain of each ATTACH on that way; none where every step was created as a partition. ATTACH
-- writes every pg_attribute row of the partition again, in the command that writes the pg_inherits row, and CREATE ...
-- PARTITION OF writes them before it: so a row of an earlier command of that transaction proves a partition by birth.
with recursive tree (root, oid, chain, attached, bounds) as (
  select w.oid, w.oid, array[]::text[], array[]::text[], '[]'::jsonb from unnest(%(oids)s::bigint[]) as w (oid)
  union all
  select
    tree.root,
    i.inhrelid::bigint,
    tree.chain || format('%%s %%s %%s', i.inhrelid, i.inhparent, i.xmin),
    case
      when exists (
        select from pg_attribute a
        where a.attrelid = i.inhrelid
          and a.attnum > 0
          and not a.attisdropped
          and a.xmin = i.xmin
          and a.cmin::text::bigint < i.cmin::text::bigint
          and a.xmax = 0
          and i.xmax = 0
      ) then tree.attached
      else tree.attached || format('%%s %%s %%s', i.inhrelid, i.inhparent, i.xmin)
    end,
    tree.bounds || jsonb_build_array(
      (
        select jsonb_build_array(p.partstrat, a.attname, a.atttypid::bigint, pg_get_expr(c.relpartbound, 0))
        from pg_partitioned_table p
        join pg_attribute a on a.attrelid = p.partrelid and a.attnum = p.partattrs[0]
        join pg_opclass o on o.oid = p.partclass[0] and o.opcdefault
        left join pg_collation l on l.oid = p.partcollation[0]
        where p.partrelid = i.inhparent and p.partnatts = 1 and coalesce(l.collisdeterministic, true)
      )
    )
  from tree
  join pg_inherits i on i.inhparent = tree.oid
  join pg_class c on c.oid = i.inhrelid and c.relispartition
),
late (index) as (
  select x.indexrelid from tree join pg_index x on x.indrelid = tree.oid where not x.indimmediate
  union
  select i.inhparent from late join pg_inherits i on i.inhrelid = late.index
)
select
  tree.root,
  c.oid::bigint as oid,
  n.nspname::text as schema,
  c.relname::text as name,
  c.relkind::text as kind,
  c.relpersistence::text as persistence,
  case when c.relreplident = 'f' or not identity.late then c.relreplident::text else 'n' end as identity,
  c.relfilenode::bigint as file,
  c.xmin::text::bigint as changed_by,
  c.relnatts::int as attnums,
  array(
    select i.inhparent::bigint from pg_inherits i where i.inhrelid = c.oid order by i.inhseqno
  ) as parents,
  array(
    select a.attname::text
    from unnest(identity.columns) with ordinality as k (attnum, place)
    join pg_attribute a on a.attrelid = c.oid and a.attnum = k.attnum
    where not identity.late
    order by k.place
  ) as key,
  case when identity.late then 0 else coalesce(identity.index, 0) end as key_index,
  coalesce(identity.late, false) as late_key,
  coalesce(m.amname = 'heap', false) as ranged,
  exists (
    select from pg_index x where x.indrelid = c.oid and x.indisunique and x.indimmediate and x.indpred is null
  ) as has_unique,
  tree.chain,
  tree.attached,
  tree.bounds,
  -- the size is asked under a lock: of a table that is held exclusively, or soon will be, the last known one is enough
  case
    when not %(sizes)s or c.relkind <> 'r' then 0
    when c.oid in (
      select l.relation
      from pg_locks l
      where l.locktype = 'relation'
        and l.database = (select d.oid from pg_database d where d.datname = current_database())
        and l.mode = 'AccessExclusiveLock'
        and l.pid is distinct from pg_backend_pid()
    ) then greatest(c.relpages, 0)::bigint * current_setting('block_size')::int
    else coalesce(pg_relation_size(c.oid), 0)
  end as bytes,
  current_setting('block_size')::int as block_size
from tree
join pg_class c on c.oid = tree.oid
join pg_namespace n on n.oid = c.relnamespace
left join pg_am m on m.oid = c.relam
left join lateral (
  select
    x.indexrelid::bigint as index,
    (x.indkey::int2[])[0:x.indnkeyatts - 1] as columns,
    x.indexrelid in (select late.index from late) as late
  from pg_index x
  where x.indrelid = c.oid
    and x.indisvalid
    and case c.relreplident when 'n' then false when 'i' then x.indisreplident else x.indisprimary end
) as identity on true
order by tree.root, n.nspname, c.relname
