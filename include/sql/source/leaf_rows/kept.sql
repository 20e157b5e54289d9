-- Ids of rows have 32 bits: of those that now may have, each is the last one that was given out.
with now (xmax) as (select pg_snapshot_xmax(pg_current_snapshot())::text::bigint)
select
  exists (
    select
    from only {leaf} as t
    cross join now
    cross join lateral (select (now.xmax >> 32 << 32) + t.xmin::text::bigint) as x (id)
    where t.ctid < %(end)s::tid
      and case when x.id > now.xmax then x.id - (1::bigint << 32) else x.id end < %(oldest)s
  )
