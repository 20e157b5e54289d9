-- Each row is of every transaction that attached the leaf, by a later command than that; without any there is none.
select
  not exists (
    select
    from only {leaf} as t
    where not coalesce(
      (
        select bool_and(a.command is not null and t.xmin = a.xid::xid and t.cmin::text::bigint > a.command and t.xmax = '0'::xid)
        from unnest(%(xids)s::text[], %(commands)s::bigint[]) as a (xid, command)
      ),
      false
    )
  )
